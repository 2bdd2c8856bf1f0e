//! Tests the runner against the real gRPC service over loopback, with a scripted box.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use imaging::stream::{Accept, Timeouts};

use crate::tinbox::{Files, Tinbox, action, until};
use agent::Error;
use agent::actions::{Leave, Limits};
use agent::runner::{Host, ProcessHost, Runner, obey};
use agent_rpc::client::Client;
use agent_rpc::{ActionState, Inventory, Refusal};
use inventory::boot_id;
use stdx::testing::PATIENCE;

const LIMITS: Limits = Limits {
    accept: Accept::Files,
    timeouts: Timeouts {
        stall: PATIENCE,
        silence: PATIENCE,
        first_wait: Duration::from_millis(10),
        longest_wait: Duration::from_millis(100),
    },
    registry: None,
};

/// Running agent, stopped on drop.
pub struct Agent(tokio::task::JoinHandle<()>);

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub fn agent<H: Host + 'static>(tinbox: &Tinbox, host: H) -> Agent {
    let token = stdx::Secret::from("token");
    let runner = Runner {
        client: Client::connect(&tinbox.authority(), "agent-1", Some(&token), None).unwrap(),
        host,
        limits: LIMITS,
        attributes: inventory::inventory(),
        inventory: Inventory::default(),
        boot_id: boot_id(),
    };
    Agent(tokio::spawn(async move { runner.run().await }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_run_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let image: Vec<u8> = (0..9_000_000_u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let files = Files::start(zstd::encode_all(image.as_slice(), 1).unwrap()).await;
    let environment = [
        format!("IMG_URL={}", files.url()),
        format!("DEST_DISK={}", disk.display()),
        format!("IMG_SHA256={}", files.sha256()),
        "COMPRESSED=true".to_owned(),
    ];
    let tinbox = Tinbox::start(vec![
        action("stream", "quay.io/tinkerbell/actions/image2disk:v1", &environment),
        action("unknown", "alpine:3", &[]),
    ]);
    let _agent = agent(&tinbox, ProcessHost);
    until("both actions end", || tinbox.reports().len() == 4).await;

    let reports = tinbox.reports();
    let states: Vec<_> =
        reports.iter().map(|report| (report.action_name.as_str(), report.state)).collect();
    assert_eq!(
        states,
        [
            ("stream", ActionState::Running),
            ("stream", ActionState::Success),
            ("unknown", ActionState::Running),
            ("unknown", ActionState::Failed),
        ]
    );
    assert!(reports[1].message.contains("sha256 verified"), "{}", reports[1].message);
    assert!(reports[1].start.unwrap() <= reports[1].stop.unwrap());
    assert!(reports[3].message.contains("there is no built-in action for image \"alpine:3\""));
    assert!(std::fs::read(&disk).unwrap() == image);
    let hello = tinbox.hellos();
    // A repeated hello is excluded: it is sent only after a failed call, and no call failed.
    assert_eq!((hello.len(), hello[0].boot_id.clone()), (1, boot_id()));
    assert!(hello[0].attributes.as_ref().unwrap().cpu.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let files = Files::start(vec![1; 100_000]).await;
    let wrong = "00".repeat(32);
    let environment = [
        format!("IMG_URL={}", files.url()),
        format!("DEST_DISK={}", disk.display()),
        format!("IMG_SHA256={wrong}"),
    ];
    let tinbox = Tinbox::start(vec![action("stream", "image2disk", &environment)]);
    let _agent = agent(&tinbox, ProcessHost);
    until("the action ends", || tinbox.reports().len() == 2).await;
    let report = tinbox.reports().remove(1);
    assert_eq!(report.state, ActionState::Failed);
    let (is, url) = (files.sha256(), files.url());
    assert_eq!(report.message, format!("sha256 of the image is {is}, expected {wrong} ({url})"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_box_may_restart_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let image: Vec<u8> = (0..3_000_000_u32).map(|n| (n ^ (n >> 7)) as u8).collect();
    let files = Files::start(image.clone()).await;
    files.hold_at(image.len() / 2);
    let environment = [format!("IMG_URL={}", files.url()), format!("DEST_DISK={}", disk.display())];
    let mut tinbox = Tinbox::start(vec![action("stream", "image2disk", &environment)]);
    let _agent = agent(&tinbox, ProcessHost);
    until("progress is told", || {
        tinbox.progress().iter().any(|progress| progress.bytes_done == image.len() as u64 / 2)
    })
    .await;
    tinbox.stop();
    files.release();
    until("the image is written", || std::fs::read(&disk).is_ok_and(|disk| disk == image)).await;
    tinbox.restart();
    until("the report arrives", || tinbox.reports().len() == 2).await;
    assert_eq!(tinbox.reports()[1].state, ActionState::Success);
    assert_eq!(files.requests(), 1, "the image was not fetched again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_stops_the_action() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::start(vec![7; 1_000_000]).await;
    files.hold_at(1000);
    let environment = [
        format!("IMG_URL={}", files.url()),
        format!("DEST_DISK={}", folder.path().join("disk").display()),
    ];
    let mut limited = action("stream", "image2disk", &environment);
    limited.timeout_secs = 1;
    let tinbox = Tinbox::start(vec![limited]);
    let _agent = agent(&tinbox, ProcessHost);
    until("the action ends", || tinbox.reports().len() == 2).await;
    let report = tinbox.reports().remove(1);
    assert_eq!(report.state, ActionState::Timeout);
    assert_eq!(report.message, "stopped after its limit of 1 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_the_box_no_longer_wants_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let files = Files::start(vec![7; 1_000_000]).await;
    files.hold_at(1000);
    let environment = [format!("IMG_URL={}", files.url()), format!("DEST_DISK={}", disk.display())];
    let tinbox = Tinbox::start(vec![action("stream", "image2disk", &environment)]);
    tinbox.stop_actions("its workflow is over: cancelled");
    let _agent = agent(&tinbox, ProcessHost);
    until("the action ends", || tinbox.reports().len() == 2).await;
    let report = tinbox.reports().remove(1);
    assert_eq!(report.state, ActionState::Failed);
    assert_eq!(report.message, "stopped: its workflow is over: cancelled");
    files.release();
    until("the agent asks again", || tinbox.questions() >= 2).await;
    assert!(std::fs::read(&disk).is_ok_and(|disk| disk.len() < 1_000_000), "it went on writing");
}

/// Host that records each [`Leave`], and in `early` if the box had not received the report before.
#[derive(Clone, Default)]
struct Witness {
    left: Arc<Mutex<Vec<Leave>>>,
    early: Arc<AtomicBool>,
    tinbox: Arc<Mutex<Option<crate::tinbox::CallLog>>>,
}

impl Host for Witness {
    fn may_leave(&self) -> bool {
        true
    }

    fn leave(&self, how: Leave) -> Result<(), Error> {
        let seen = self.tinbox.lock().unwrap();
        let was_reported = seen.as_ref().is_some_and(|seen| {
            seen.reports().iter().any(|report| report.state == ActionState::Success)
        });
        self.early.store(!was_reported, Ordering::Relaxed);
        self.left.lock().unwrap().push(how);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_restarts_once_and_after_the_acknowledgement() {
    let tinbox = Tinbox::start(vec![action("reboot", "ghcr.io/x/reboot:latest", &[])]);
    tinbox.refuse_reports(vec![
        None,
        Some(Refusal::Internal("the store is full".into())),
        Some(Refusal::Unavailable("shutting down".into())),
    ]);
    let witness = Witness::default();
    *witness.tinbox.lock().unwrap() = Some(tinbox.seen());
    let _agent = agent(&tinbox, witness.clone());
    until("the machine is left", || !witness.left.lock().unwrap().is_empty()).await;
    until("the agent asks again", || tinbox.questions() >= 4).await;
    assert_eq!(*witness.left.lock().unwrap(), [Leave::Reboot]);
    assert!(!witness.early.load(Ordering::Relaxed), "left before the acknowledgement");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_powers_off_when_the_box_grants_it_and_only_then() {
    let tinbox = Tinbox::start(Vec::new());
    let token = stdx::Secret::from("token");
    let client = Client::connect(&tinbox.authority(), "agent-1", Some(&token), None).unwrap();
    let witness = Witness::default();
    let host = witness.clone();
    let _obeying = Agent(tokio::spawn(async move {
        let Err(error) = obey(&client, &host).await;
        panic!("{error}");
    }));
    // The caller of this request has given up meanwhile.
    tinbox.request_power_off("ended", false);
    until("the first confirmation", || tinbox.confirmed() == ["ended"]).await;
    tinbox.request_power_off("wanted", true);
    until("the machine is left", || !witness.left.lock().unwrap().is_empty()).await;
    assert_eq!(*witness.left.lock().unwrap(), [Leave::PowerOff]);
    assert_eq!(tinbox.confirmed(), ["ended", "wanted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_never_restarts_the_machine() {
    let tinbox = Tinbox::start(vec![action("reboot", "reboot", &[])]);
    let _agent = agent(&tinbox, ProcessHost);
    until("the action ends", || tinbox.reports().len() == 2).await;
    assert_eq!(tinbox.reports()[1].state, ActionState::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_refused_at_its_start_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let files = Files::start(vec![1; 1000]).await;
    let environment = [format!("IMG_URL={}", files.url()), format!("DEST_DISK={}", disk.display())];
    let tinbox = Tinbox::start(vec![action("stream", "image2disk", &environment)]);
    tinbox
        .refuse_reports(vec![Some(Refusal::Precondition("the workflow is cancelled".into())); 50]);
    let _agent = agent(&tinbox, ProcessHost);
    until("the agent asks again", || tinbox.questions() >= 3).await;
    assert_eq!(files.requests(), 0);
    assert!(!disk.exists());
}
