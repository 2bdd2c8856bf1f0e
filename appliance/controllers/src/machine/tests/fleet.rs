//! A rack whose management network fails in part: BMCs that do not respond delay no other BMC.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::bmc::{MACHINE, TASK};
use api::core::SECRET;
use api::meta::ObjectKey;
use bmc::{
    Address, BootControl, BootOverride, Capabilities, Driver, Endpoint, Error, IpmiError, Pending,
    Power, PowerAction,
};
use jiff::Timestamp;
use objects::fake::Memory;
use serde_json::json;
use stdx::TestClock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ages::Ages;
use crate::machine::{Drivers, MachineReconciler, Polls, QueuedDrivers};
use crate::runtime::{Controller, Reconciled, Reconciler, Requeue};
use crate::task::{ShownErrors, TaskReconciler};

/// Number of BMCs in the test: those of some ten racks.
const BMCS: usize = 500;
/// Number of BMCs that accept requests and never respond.
const HUNG: usize = 50;
/// Time after which a driver ends a request without a response; longer than any real driver's.
const SILENCE: Duration = Duration::from_secs(20);
/// Response time of a healthy BMC.
const RESPONSE: Duration = Duration::from_millis(40);
/// Maximum delay of the 99th percentile of the healthy BMCs.
const DELAY_MAX: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_secs(30);

/// BMCs, of which the first [`HUNG`] do not respond.
struct Rack;

struct Bmc {
    address: Address,
    is_hung: bool,
}

impl Drivers for Rack {
    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver> {
        let number: usize = endpoint.address.host.parse().unwrap();
        Arc::new(Bmc { address: endpoint.address, is_hung: number < HUNG })
    }
}

impl Bmc {
    async fn respond<T>(&self, answer: T) -> Result<T, Error> {
        if self.is_hung {
            tokio::time::sleep(SILENCE).await;
            let address = (&self.address).into();
            return Err(IpmiError::NoAnswer { address, step: "a command", after: SILENCE }.into());
        }
        tokio::time::sleep(RESPONSE).await;
        Ok(answer)
    }
}

impl Driver for Bmc {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn capabilities(&self) -> Capabilities {
        let power = Capabilities::ALL_POWER;
        Capabilities {
            power,
            boot: BootControl::Always,
            features: Vec::new(),
            missing: Vec::new(),
            weakness: None,
        }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(self.respond(Power::On))
    }

    fn set_power(&self, _action: PowerAction) -> Pending<'_, ()> {
        Box::pin(self.respond(()))
    }

    fn set_boot_device(&self, _boot: BootOverride) -> Pending<'_, ()> {
        Box::pin(self.respond(()))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(self.respond(None))
    }
}

/// Reconciler that measures the time from the due time to the end of each reconcile.
struct Measured<R> {
    inner: Arc<R>,
    due: Mutex<HashMap<ObjectKey, Instant>>,
    delays: Mutex<Vec<Duration>>,
}

impl<R: Reconciler> Reconciler for Measured<R> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn at_once_max(&self) -> usize {
        self.inner.at_once_max()
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let result = self.inner.reconcile(key).await;
            let now = Instant::now();
            let mut due = self.due.lock().unwrap();
            if !is_hung(key) {
                self.delays.lock().unwrap().push(now - due[key]);
            }
            if let Ok(Requeue::After(wait)) = result {
                due.insert(key.clone(), now + wait);
            }
            result
        })
    }
}

fn is_hung(key: &ObjectKey) -> bool {
    key.name.parse::<usize>().unwrap() < HUNG
}

/// Runs a controller of all objects for `time`, and returns the delays of the healthy ones.
async fn run<R: Reconciler>(inner: Arc<R>, time: Duration) -> Vec<Duration> {
    let keys = (0..BMCS).map(|number| ObjectKey::new("default", number.to_string()));
    let keys: Vec<ObjectKey> = keys.collect();
    let due = keys.iter().map(|key| (key.clone(), Instant::now())).collect();
    let (due, delays) = (Mutex::new(due), Mutex::default());
    let measured = Arc::new(Measured { inner, due, delays });
    let controller = Controller::new(measured.clone());
    keys.iter().for_each(|key| controller.signals().signal(key.clone()));
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(controller.run(shutdown.clone()));
    tokio::time::sleep(time).await;
    shutdown.cancel();
    running.await.unwrap();
    let mut delays = std::mem::take(&mut *measured.delays.lock().unwrap());
    delays.sort_unstable();
    delays
}

fn percentile_99(delays: &[Duration]) -> Duration {
    delays[delays.len() * 99 / 100]
}

fn objects() -> Arc<Memory> {
    let memory = Arc::new(Memory::default());
    let metadata = json!({ "name": "bmc", "namespace": "default" });
    let data = json!({ "username": "YWRtaW4=", "password": "c2VjcmV0" });
    memory.put(SECRET, json!({ "metadata": metadata, "data": data }));
    for number in 0..BMCS {
        let host = number.to_string();
        let metadata = json!({ "name": host, "namespace": "default" });
        let connection = json!({ "host": host, "authSecretRef": { "name": "bmc" } });
        let machine = json!({ "metadata": metadata, "spec": { "connection": connection } });
        memory.put(MACHINE, machine);
        let action = json!({ "powerAction": "on" });
        let start = json!({ "startTime": "1970-01-01T00:00:00Z" });
        let spec = json!({ "connection": connection, "task": action });
        memory.put(TASK, json!({ "metadata": metadata, "spec": spec, "status": start }));
    }
    memory
}

#[tokio::test(start_paused = true)]
async fn fifty_hung_bmcs_delay_no_reading_of_the_others() {
    let memory = objects();
    let clock = Arc::new(TestClock::at(Timestamp::UNIX_EPOCH));
    let machines = Arc::new(MachineReconciler {
        objects: memory.clone(),
        drivers: Arc::new(QueuedDrivers::new(Arc::new(Rack), clock.clone())),
        clock,
        poll: POLL,
        polls: Polls::default(),
    });
    // Within one interval, each BMC that does not respond is shown.
    run(machines.clone(), POLL).await;
    for number in 0..BMCS {
        let machine = memory.peek(MACHINE, &number.to_string()).unwrap();
        let condition = &machine["status"]["conditions"][0];
        let expected = if number < HUNG { "False" } else { "True" };
        assert_eq!(condition["status"], expected, "{number}: {condition}");
    }
    let delays = run(machines, POLL * 20).await;
    assert!(delays.len() >= (BMCS - HUNG) * 20, "{}", delays.len());
    assert!(percentile_99(&delays) <= DELAY_MAX, "{:?}", percentile_99(&delays));
}

#[tokio::test(start_paused = true)]
async fn fifty_hung_bmcs_delay_no_task_of_the_others() {
    let memory = objects();
    let clock = Arc::new(TestClock::at(Timestamp::UNIX_EPOCH));
    let tasks = Arc::new(TaskReconciler {
        objects: memory.clone(),
        drivers: Arc::new(QueuedDrivers::new(Arc::new(Rack), clock.clone())),
        clock,
        ages: Ages::default(),
        shown: ShownErrors::default(),
    });
    let delays = run(tasks, POLL).await;
    assert_eq!(delays.len(), BMCS - HUNG, "each Task of a healthy BMC ran once");
    assert!(percentile_99(&delays) <= DELAY_MAX, "{:?}", percentile_99(&delays));
    let is_done = |number: &usize| {
        let task = memory.peek(TASK, &number.to_string()).unwrap();
        task["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Completed")
    };
    assert_eq!((0..BMCS).filter(is_done).count(), BMCS - HUNG);
}
