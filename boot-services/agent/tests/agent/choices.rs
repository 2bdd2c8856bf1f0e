//! Tests that the box records the disk of a hint before the action uses the disk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use imaging::Meter;
use imaging::select::{DiskInfo, in_scope, record};

use crate::runner::agent;
use crate::tinbox::{Tinbox, action, until};
use agent::Error;
use agent::actions::{Leave, Limits, Outcome};
use agent::runner::{Host, RunningAction};
use agent_rpc::{ActionState, Assignment, Refusal};

/// Test double of a machine: its actions count a write to `disk`, which a hint selects.
#[derive(Clone, Default)]
struct Machine {
    disk: Arc<Mutex<DiskInfo>>,
    writes: Arc<AtomicUsize>,
}

impl Host for Machine {
    fn may_leave(&self) -> bool {
        false
    }

    fn leave(&self, _: Leave) -> Result<(), Error> {
        Err(Error::Stopped)
    }

    fn act(&self, _: &Assignment, _: &Limits, _: &Arc<Meter>) -> Result<RunningAction, Error> {
        let machine = self.clone();
        Ok(Box::pin(async move {
            let disk = machine.disk.lock().unwrap().clone();
            let work = in_scope(move || record("model=Samsung".to_owned(), &disk));
            let recorded = tokio::task::spawn_blocking(work).await.unwrap();
            let named = "model=Samsung".to_owned();
            recorded.map_err(|reason| imaging::Error::OtherDisk { named, reason })?;
            machine.writes.fetch_add(1, Ordering::Relaxed);
            Ok(Outcome::Done("written".to_owned()))
        }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_not_used_before_the_box_has_recorded_it() {
    let machine = Machine::default();
    let serial = "S3Z9NB0K".to_owned();
    *machine.disk.lock().unwrap() = DiskInfo { serial, size: 7, ..DiskInfo::default() };
    let image = "image2disk";
    let tinbox = Tinbox::start(vec![action("image", image, &[]), action("file", image, &[])]);
    // The box is busy at first, and the second action has another disk.
    let busy = Refusal::Unavailable("it is being written too often".to_owned());
    tinbox.refuse_choices(vec![busy]);
    let _agent = agent(&tinbox, machine.clone());
    until("the first action ends", || tinbox.reports().len() >= 2).await;
    assert_eq!(tinbox.reports()[1].state, ActionState::Success);
    until("the second action ends", || tinbox.reports().len() == 4).await;
    let choices = tinbox.choices();
    assert_eq!((choices.len(), choices[0] == choices[1]), (3, true));
    let first = &choices[0];
    assert_eq!(
        (first.workflow_id.as_str(), first.action_id.as_str()),
        ("default/wf", "id-of-image")
    );
    assert_eq!((first.hint.as_str(), first.serial.as_str()), ("model=Samsung", "S3Z9NB0K"));
    assert_eq!((first.bytes, choices[2].action_id.as_str()), (7, "id-of-file"));
    assert_eq!(machine.writes.load(Ordering::Relaxed), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_the_box_refuses_is_not_used() {
    let machine = Machine::default();
    let tinbox = Tinbox::start(vec![action("image", "image2disk", &[])]);
    tinbox.refuse_choices(vec![Refusal::Precondition("it chose another disk".to_owned())]);
    let _agent = agent(&tinbox, machine.clone());
    until("the action ends", || tinbox.reports().len() == 2).await;
    let report = &tinbox.reports()[1];
    assert_eq!(report.state, ActionState::Failed);
    let sentence = "cannot use the disk \"model=Samsung\": it chose another disk";
    assert_eq!(report.message, sentence);
    assert_eq!(machine.writes.load(Ordering::Relaxed), 0);
}
