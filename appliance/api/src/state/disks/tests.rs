use jiff::Timestamp;

use super::*;
use crate::state::attempt::another;
use crate::tinkerbell::{ActionState, ActionStatus, RetryFrom, State, TaskStatus};

const HINT: &str = "model=Samsung";

fn workflow() -> WorkflowStatus {
    let action = |id: &str, state| ActionStatus { id: id.into(), state, ..Default::default() };
    let actions =
        vec![action("image", ActionState::Running), action("write", ActionState::Pending)];
    let task = TaskStatus { agent_id: "a".into(), actions, ..Default::default() };
    WorkflowStatus { state: State::Running, tasks: vec![task], ..Default::default() }
}

fn disk(hint: &str, wwn: &str, serial: &str) -> ChosenDisk {
    let (agent_id, hint, model) = ("a".into(), hint.into(), "Samsung".into());
    ChosenDisk { agent_id, hint, wwn: wwn.into(), serial: serial.into(), model, size: 1 << 40 }
}

#[test]
fn later_actions_and_attempts_use_the_disk_of_the_first() {
    let mut status = workflow();
    assert_eq!(choose(&mut status, "image", disk(HINT, "naa.1", "ONE")), Ok(true));
    assert_eq!(choose(&mut status, "image", disk(HINT, "naa.1", "ONE")), Ok(false));
    status.tasks[0].actions[0].state = ActionState::Success;
    status.tasks[0].actions[1].state = ActionState::Running;
    let refused = choose(&mut status, "write", disk(HINT, "naa.2", "TWO")).unwrap_err();
    let sentence = "the hint \"model=Samsung\" chose Samsung of 1.0 TiB, serial number ONE \
                    earlier in this workflow, but matches Samsung of 1.0 TiB, serial number TWO \
                    now: attach that disk again, or create a new Workflow to use the other";
    assert_eq!(refused.to_string(), sentence);
    // Another hint may choose another disk, and so may a hint on another machine.
    assert_eq!(choose(&mut status, "write", disk("model=Intel", "naa.2", "TWO")), Ok(true));

    status.state = State::Failed;
    for from in [RetryFrom::Failed, RetryFrom::Start] {
        let mut again = another(&status, from, true, Timestamp::UNIX_EPOCH).unwrap();
        again.state = State::Running;
        again.tasks[0].actions[0].state = ActionState::Running;
        let id = again.tasks[0].actions[0].id.clone();
        assert_eq!(choose(&mut again, &id, disk(HINT, "naa.1", "ONE")), Ok(false));
        let refused = choose(&mut again, &id, disk(HINT, "naa.2", "TWO"));
        assert!(matches!(refused, Err(DiskChoiceError::Other { .. })), "{refused:?}");
    }
}

#[test]
fn a_disk_is_known_by_what_it_says_of_itself() {
    for (before, now, same) in [
        (("naa.1", "ONE"), ("NAA.1", "ONE"), true),
        (("naa.1", "ONE"), ("naa.2", "ONE"), false),
        (("naa.1", ""), ("naa.1", "ONE"), true),
        (("naa.1", "ONE"), ("", "ONE"), true),
        (("", "ONE"), ("", "TWO"), false),
        (("naa.1", ""), ("", "ONE"), false),
        (("naa.1", "ONE"), ("", ""), false),
        (("", ""), ("", ""), true),
    ] {
        let of = |(wwn, serial)| disk(HINT, wwn, serial);
        assert_eq!(is_same(&of(before), &of(now)), same, "{before:?} {now:?}");
    }
    let smaller = ChosenDisk { size: 1, ..disk(HINT, "", "") };
    assert!(!is_same(&smaller, &disk(HINT, "", "")));
}

#[test]
fn only_the_action_that_runs_chooses() {
    let mut status = workflow();
    let other = ChosenDisk { agent_id: "b".into(), ..disk(HINT, "naa.1", "ONE") };
    for (action, choice) in [("write", disk(HINT, "naa.1", "ONE")), ("image", other)] {
        let refused = choose(&mut status, action, choice);
        assert!(matches!(refused, Err(DiskChoiceError::Action { .. })), "{refused:?}");
    }
    let mut ended = WorkflowStatus { state: State::Failed, ..workflow() };
    assert!(choose(&mut ended, "image", disk(HINT, "naa.1", "ONE")).is_err());
    for number in 0..CHOICES_MAX {
        let hint = format!("minSizeGigabytes={number}");
        assert_eq!(choose(&mut status, "image", disk(&hint, "naa.1", "ONE")), Ok(true));
    }
    let one_more = choose(&mut status, "image", disk(HINT, "naa.1", "ONE"));
    assert_eq!(one_more, Err(DiskChoiceError::Full));
}
