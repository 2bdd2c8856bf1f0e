//! Tasks of a machine that has only Wake-on-LAN: its own requests show its power state.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::bmc::{JOB, TASK};
use api::core::SECRET;
use api::meta::ObjectKey;
use bmc::{
    BootControl, BootOverride, Capabilities, Confirmation, Driver, Endpoint, Pending, Power,
    PowerAction, Protocol,
};
use jiff::Timestamp;
use objects::fake::Memory;
use serde_json::json;
use stdx::{MacAddr, TestClock};
use tokio::time::Instant;

use super::super::{ShownErrors, TaskReconciler};
use crate::ages::Ages;
use crate::machine::Drivers;
use crate::power::{
    Confirming, FRESH, MachineSightings, OFF_AFTER, SILENT, Sighting, Sightings, Source,
};
use crate::runtime::Reconciler as _;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);

/// Machine with its requests, by the clock of the test.
struct Rig {
    last: Mutex<Option<(Source, Instant)>>,
    start: Instant,
    /// Requests to switch on, with the hardware addresses of the packets.
    wakes: Mutex<Vec<Vec<MacAddr>>>,
    /// Time from a magic packet to the first request; `None` for a machine that does not wake.
    boots_in: Option<Duration>,
    /// Answer of the power hook, or of the agent, to a request.
    hook: Result<(), &'static str>,
    /// Requests to the power hook.
    offs: AtomicUsize,
    shutdown: Mutex<Option<Instant>>,
}

impl Rig {
    fn new(boots_in: Option<Duration>) -> Arc<Self> {
        Self::with_hook(boots_in, Err("no hook"))
    }

    fn with_hook(boots_in: Option<Duration>, hook: Result<(), &'static str>) -> Arc<Self> {
        let (last, wakes, start) = (Mutex::default(), Mutex::default(), Instant::now());
        let (offs, shutdown) = (AtomicUsize::default(), Mutex::default());
        Arc::new(Self { last, start, wakes, boots_in, hook, offs, shutdown })
    }

    /// Polls as a power hook does, for the given time from now.
    fn polls_for(self: &Arc<Self>, time: Duration) {
        self.repeats(Source::Hook, time);
    }

    fn repeats(self: &Arc<Self>, source: Source, time: Duration) {
        let (rig, end) = (Arc::clone(self), Instant::now() + time);
        rig.sends(source);
        tokio::spawn(async move {
            while Instant::now() < end {
                rig.sends(source);
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        });
    }

    fn sends(&self, source: Source) {
        *self.last.lock().unwrap() = Some((source, Instant::now()));
    }

    /// Runs a Task with a power action to its end, and returns its last condition and message.
    async fn run(self: &Arc<Self>, action: &str) -> (String, String) {
        let memory = Arc::new(Memory::default());
        memory.put(SECRET, json!({ "metadata": { "name": "x", "namespace": "default" } }));
        let job = json!({ "name": "j", "namespace": "default", "uid": "job" });
        memory.put(JOB, json!({ "metadata": job, "spec": { "machineRef": { "name": "m" } } }));
        let key = memory.put(
            TASK,
            json!({
                "metadata": {
                    "name": "t", "namespace": "default",
                    "ownerReferences": [{ "kind": "Job", "name": "j", "uid": "job" }],
                },
                "spec": {
                    "task": { "powerAction": action },
                    "connection": { "host": "x", "providerOptions": { "wakeOnLAN": {} } },
                },
            }),
        );
        let reconciler = TaskReconciler {
            objects: memory.clone(),
            drivers: Arc::new(RigDrivers(Arc::clone(self))),
            clock: Arc::new(TestClock::at(Timestamp::UNIX_EPOCH)),
            ages: Ages::default(),
            shown: ShownErrors::default(),
        };
        reconciler.reconcile(&key).await.unwrap();
        reconciler.reconcile(&key).await.unwrap();
        let task = memory.peek(TASK, "t").unwrap();
        let last = task["status"]["conditions"].as_array().unwrap().last().unwrap().clone();
        let text = |field: &str| last[field].as_str().unwrap_or_default().to_owned();
        (text("type"), text("message"))
    }
}

struct RigDrivers(Arc<Rig>);

impl Drivers for RigDrivers {
    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver> {
        let Protocol::WakeOnLan(options) = endpoint.protocol else { panic!("{endpoint:?}") };
        assert_eq!(options.interfaces, ["eth7"]);
        Arc::new(Wake { rig: Arc::clone(&self.0), macs: options.macs })
    }

    fn sightings(&self) -> Option<Arc<dyn Sightings>> {
        Some(Arc::new(RigSightings(Arc::clone(&self.0))))
    }
}

struct RigSightings(Arc<Rig>);

impl Sightings for RigSightings {
    fn of(&self, key: &ObjectKey) -> MachineSightings {
        assert_eq!(*key, ObjectKey::new("default", "m"));
        let last = *self.0.last.lock().unwrap();
        let sightings = last.map(|(source, at)| Sighting { source, age: at.elapsed() });
        MachineSightings {
            macs: vec![MAC],
            interfaces: vec!["eth7".to_owned()],
            sightings: sightings.into_iter().collect(),
            shutdown: self.0.shutdown.lock().unwrap().map(|at| at.elapsed()),
            agent_powers_off: self.0.hook.is_ok() && matches!(last, Some((Source::Agent, _))),
            listening: self.0.start.elapsed(),
            ..MachineSightings::default()
        }
    }

    fn acknowledged(&self, _key: &ObjectKey, action: PowerAction) {
        if action == PowerAction::Soft {
            *self.0.shutdown.lock().unwrap() = Some(Instant::now());
        }
    }

    fn watch(&self, key: &ObjectKey) {
        assert_eq!(*key, ObjectKey::new("default", "m"));
    }

    fn power_off<'a>(&'a self, _key: &'a ObjectKey) -> Confirming<'a> {
        self.0.offs.fetch_add(1, Ordering::SeqCst);
        Box::pin(ready(self.0.hook.map_err(str::to_owned)))
    }
}

struct Wake {
    rig: Arc<Rig>,
    macs: Vec<MacAddr>,
}

impl Driver for Wake {
    fn name(&self) -> &'static str {
        "wake-on-lan"
    }

    fn capabilities(&self) -> Capabilities {
        let (boot, features) = (BootControl::None, Vec::new());
        Capabilities {
            power: &[PowerAction::On],
            boot,
            features,
            missing: Vec::new(),
            weakness: None,
        }
    }

    fn confirmation(&self) -> Confirmation {
        Confirmation::Sighting { within: Duration::from_secs(120) }
    }

    fn power(&self) -> Pending<'_, Power> {
        panic!("the power state comes from the requests of the machine")
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        if action != PowerAction::On {
            let driver = self.name();
            return Box::pin(ready(Err(bmc::Error::Unsupported { driver, action })));
        }
        self.rig.wakes.lock().unwrap().push(self.macs.clone());
        if let Some(time) = self.rig.boots_in {
            let rig = Arc::clone(&self.rig);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                rig.sends(Source::Dhcp);
            });
        }
        Box::pin(ready(Ok(())))
    }

    fn set_boot_device(&self, _boot: BootOverride) -> Pending<'_, ()> {
        panic!("a magic packet has no boot device")
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(ready(Ok(None)))
    }
}

#[tokio::test(start_paused = true)]
async fn on_is_sent_in_an_unknown_state_and_confirmed_by_a_request_of_the_machine() {
    let rig = Rig::new(Some(Duration::from_secs(15)));
    let (condition, message) = rig.run("on").await;
    assert_eq!(condition, "Completed", "{message}");
    assert!(message.starts_with("power is on: it sent a DHCP request "), "{message}");
    assert_eq!(*rig.wakes.lock().unwrap(), [vec![MAC]], "the address of its Hardware");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_does_not_wake_fails_with_what_to_check() {
    let rig = Rig::new(None);
    let (condition, message) = rig.run("on").await;
    assert_eq!(condition, "Failed");
    assert!(message.starts_with("sent, no sighting in 120 s: check that Wake-on-LAN"), "{message}");
    assert!(rig.wakes.lock().unwrap().len() > 1, "the packets are repeated");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_seen_running_gets_no_packet() {
    let rig = Rig::new(None);
    rig.sends(Source::Agent);
    let (condition, message) = rig.run("on").await;
    assert_eq!(condition, "Completed", "{message}");
    assert_eq!(rig.wakes.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn off_of_a_silent_machine_completes_and_says_why() {
    let rig = Rig::new(None);
    let start = Instant::now();
    let (condition, message) = rig.run("off").await;
    assert_eq!(condition, "Completed", "{message}");
    assert!(message.starts_with("taken as off, because it is silent: "), "{message}");
    assert!(start.elapsed() >= FRESH, "an agent had the time for a message");
    rig.sends(Source::Boot);
    let start = Instant::now();
    let (condition, message) = rig.run("off").await;
    assert_eq!(condition, "Completed", "{message}");
    assert!(start.elapsed() >= SILENT, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn off_of_a_running_machine_fails_with_what_to_do() {
    let rig = Rig::new(None);
    let agent = Arc::clone(&rig);
    let beats = tokio::spawn(async move {
        loop {
            agent.sends(Source::Agent);
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    });
    let (condition, message) = rig.run("off").await;
    beats.abort();
    assert_eq!(condition, "Failed");
    assert!(message.contains("its agent sent a message"), "{message}");
    assert!(message.contains("; its agent cannot switch it off; "), "{message}");
    assert!(message.contains("press its power button"), "{message}");
    assert_eq!(rig.wakes.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn off_goes_through_the_power_hook_and_ends_with_the_silence_after_it() {
    for action in ["off", "soft"] {
        let rig = Rig::with_hook(None, Ok(()));
        rig.polls_for(Duration::from_secs(1));
        let start = Instant::now();
        let (condition, message) = rig.run(action).await;
        assert_eq!(condition, "Completed", "{message}");
        let want = "power is off: it acknowledged a shutdown and is silent since";
        assert_eq!(message, want);
        assert!(start.elapsed() >= OFF_AFTER);
        assert_eq!(rig.offs.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn off_goes_through_the_agent_and_ends_with_the_silence_after_it() {
    let rig = Rig::with_hook(None, Ok(()));
    rig.repeats(Source::Agent, Duration::from_secs(1));
    let (condition, message) = rig.run("off").await;
    assert_eq!(condition, "Completed", "{message}");
    assert_eq!(message, "power is off: it acknowledged a shutdown and is silent since");
    assert_eq!(rig.offs.load(Ordering::SeqCst), 1);
    // An agent that goes on after its confirmation is not taken as off.
    let rig = Rig::with_hook(None, Ok(()));
    rig.repeats(Source::Agent, Duration::from_secs(600));
    let (condition, message) = rig.run("off").await;
    assert_eq!(condition, "Failed");
    assert!(message.contains("but the machine did not power off: its agent sent"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_stays_on_after_its_hook_confirmed_fails_with_what_to_check() {
    let rig = Rig::with_hook(None, Ok(()));
    rig.polls_for(Duration::from_secs(600));
    let (condition, message) = rig.run("off").await;
    assert_eq!(condition, "Failed");
    assert!(
        message.starts_with("the agent or the power hook confirmed the request, but"),
        "{message}"
    );
    assert!(message.contains("the power hook of its system polled"), "{message}");
    assert_eq!(rig.offs.load(Ordering::SeqCst), 1, "the request is not repeated");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_does_not_confirm_fails_the_task_with_its_reason() {
    let rig = Rig::with_hook(None, Err("the power hook did not confirm"));
    rig.polls_for(Duration::from_secs(600));
    let (condition, message) = rig.run("off").await;
    assert_eq!(condition, "Failed");
    assert_eq!(message, "cannot soft power off: the power hook did not confirm");
}

#[tokio::test(start_paused = true)]
async fn a_cycle_is_refused() {
    for action in ["cycle", "reset"] {
        let (condition, message) = Rig::new(None).run(action).await;
        assert_eq!(condition, "Failed", "{message}");
        assert!(message.contains("does not support"), "{message}");
    }
}
