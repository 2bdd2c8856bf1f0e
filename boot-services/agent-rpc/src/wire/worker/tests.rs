//! Tests of the protocol detection of reports, with valid and with mixed fields.

use prost::Message as _;

use super::{AnyActionStatus, AnyReport, proto};
use crate::message::{ActionState, Refusal, Report};
use crate::wire::proto::action_status_request::StateType;
use crate::worker::{ActionList, ListedAction, NamedReport, Turn};

fn read(bytes: &[u8]) -> Result<AnyReport, Refusal> {
    AnyActionStatus::decode(bytes).unwrap().identify()
}

fn older(status: proto::State) -> proto::WorkflowActionStatus {
    proto::WorkflowActionStatus {
        workflow_id: "tink/wf".to_owned(),
        task_name: "install".to_owned(),
        action_name: "write".to_owned(),
        action_status: status.into(),
        seconds: 62,
        message: "said".to_owned(),
        created_at: Some(prost_types::Timestamp { seconds: 1, nanos: 2 }),
        worker_id: "02:00:00:00:00:01".to_owned(),
    }
}

fn today(state: StateType) -> proto::ActionStatusRequest {
    proto::ActionStatusRequest {
        workflow_id: Some("tink/wf".to_owned()),
        agent_id: Some("a1".to_owned()),
        task_id: Some("t".to_owned()),
        action_id: Some("a".to_owned()),
        action_name: Some("write".to_owned()),
        action_state: Some(state.into()),
        execution_start: Some(prost_types::Timestamp { seconds: 7, nanos: 0 }),
        execution_stop: Some(prost_types::Timestamp { seconds: 9, nanos: 0 }),
        execution_duration: Some("2s".to_owned()),
        message: Some(proto::ActionMessage { message: Some("action completed".to_owned()) }),
    }
}

#[test]
fn an_older_workers_report_is_read_as_one() {
    let states = [
        (proto::State::Pending, ActionState::Pending),
        (proto::State::Running, ActionState::Running),
        (proto::State::Failed, ActionState::Failed),
        (proto::State::Timeout, ActionState::Timeout),
        (proto::State::Success, ActionState::Success),
    ];
    for (on_wire, state) in states {
        let report = read(&older(on_wire).encode_to_vec());
        let want = NamedReport {
            workflow_id: "tink/wf".to_owned(),
            worker_id: "02:00:00:00:00:01".to_owned(),
            task_name: "install".to_owned(),
            action_name: "write".to_owned(),
            state,
            seconds: 62,
            message: "said".to_owned(),
        };
        assert_eq!(report, Ok(AnyReport::Worker(want)));
    }
}

#[test]
fn a_report_of_today_is_read_as_one() {
    for state in [StateType::Pending, StateType::Running, StateType::Failed, StateType::Timeout] {
        let want = Report::try_from(today(state)).unwrap();
        assert_eq!(read(&today(state).encode_to_vec()), Ok(AnyReport::Agent(want.clone())));
        let own = AnyActionStatus::from(today(state));
        assert_eq!(own.encode_to_vec(), today(state).encode_to_vec());
        assert_eq!(own.identify(), Ok(AnyReport::Agent(want)));
    }
}

/// Reports in the bytes that Go's protobuf library writes, in order of the field numbers.
#[test]
fn bytes_of_the_wire() {
    // RUNNING, without seconds: field 4 is the varint 1.
    let worker = b"\x0a\x03n/w\x12\x01t\x1a\x01a\x20\x01\x32\x02go\x42\x02w1";
    let Ok(AnyReport::Worker(report)) = read(worker) else { panic!("{:?}", read(worker)) };
    assert_eq!((report.state, report.worker_id.as_str()), (ActionState::Running, "w1"));
    assert_eq!((report.seconds, report.message.as_str()), (0, "go"));
    // SUCCESS: field 4 is the string "a", field 6 the varint 5.
    let agent = b"\x0a\x03n/w\x12\x02w1\x1a\x01t\x22\x01a\x2a\x04name\x30\x05";
    let Ok(AnyReport::Agent(report)) = read(agent) else { panic!("{:?}", read(agent)) };
    assert_eq!((report.state, report.action_id.as_str()), (ActionState::Success, "a"));
}

#[test]
fn empty_fields_are_told_apart_too() {
    let refused = |bytes: &[u8]| match read(bytes) {
        Err(Refusal::InvalidArgument(why)) => why,
        other => panic!("{other:?}"),
    };
    // proto3 leaves the zero out: a worker that waits sends none of the three fields.
    let waiting = proto::WorkflowActionStatus {
        seconds: 0,
        message: String::new(),
        ..older(proto::State::Pending)
    };
    let Ok(AnyReport::Worker(report)) = read(&waiting.encode_to_vec()) else { panic!() };
    assert_eq!(report.state, ActionState::Pending);
    assert_eq!(refused(b""), "workflow id is empty");
    // Presence is explicit today: an empty action id is still a string.
    let nameless =
        proto::ActionStatusRequest { action_id: Some(String::new()), ..today(StateType::Running) };
    assert_eq!(refused(&nameless.encode_to_vec()), "action id is empty");
    let stateless = proto::ActionStatusRequest {
        action_state: Some(0),
        action_id: None,
        action_name: None,
        ..today(StateType::Running)
    };
    assert_eq!(refused(&stateless.encode_to_vec()), "the action state is unknown");
    for (status, want) in [
        (
            proto::WorkflowActionStatus { task_name: String::new(), ..waiting.clone() },
            "task name is empty",
        ),
        (
            proto::WorkflowActionStatus { action_name: String::new(), ..waiting },
            "action name is empty",
        ),
    ] {
        assert_eq!(refused(&status.encode_to_vec()), want);
    }
}

#[test]
fn what_is_of_neither_is_refused() {
    let junk: [&[u8]; 4] = [
        // Field 4 as a varint and as a string.
        b"\x0a\x03n/w\x12\x01t\x1a\x01a\x20\x01\x22\x01a",
        // A worker's field 4, and field 6 of today.
        b"\x0a\x03n/w\x12\x01t\x1a\x01a\x20\x01\x30\x01",
        // Field 4 as 32 and as 64 bits.
        b"\x0a\x03n/w\x25\x00\x00\x00\x00",
        b"\x0a\x03n/w\x21\x00\x00\x00\x00\x00\x00\x00\x00",
    ];
    for bytes in junk {
        let refused = read(bytes).unwrap_err();
        assert!(matches!(&refused, Refusal::InvalidArgument(why) if why.contains("neither")));
    }
    // A worker's task name that is no string of UTF-8, and a state of none.
    for bytes in
        [b"\x0a\x03n/w\x12\x01\xff\x20\x01".as_slice(), b"\x12\x01t\x0a\x01w\x1a\x01a\x20\x09"]
    {
        assert!(matches!(read(bytes), Err(Refusal::InvalidArgument(_))), "{bytes:?}");
    }
}

#[test]
fn what_ends_early_is_no_message() {
    let whole = older(proto::State::Success).encode_to_vec();
    let ends = (0..whole.len()).filter(|end| AnyActionStatus::decode(&whole[..*end]).is_ok());
    // Only between two of its eight fields.
    assert_eq!(ends.count(), 8);
    for junk in [b"\x0a\xff\xff\xff\xff\x0f".as_slice(), b"\x00", b"\x0f", b"\x24\x24\x24"] {
        assert!(AnyActionStatus::decode(junk).is_err(), "{junk:?}");
    }
}

#[test]
fn what_nobody_knows_is_not_kept() {
    let mut bytes = older(proto::State::Success).encode_to_vec();
    let known = AnyActionStatus::decode(bytes.as_slice()).unwrap();
    // Field 11, a varint, and field 12, a string.
    bytes.extend_from_slice(b"\x58\x01\x62\x03abc");
    assert_eq!(AnyActionStatus::decode(bytes.as_slice()).unwrap(), known);
}

#[test]
fn identifiers_and_text_are_bounded() {
    let long = |length: usize| "x".repeat(length);
    let status = proto::WorkflowActionStatus { message: long(5000), ..older(proto::State::Failed) };
    let Ok(AnyReport::Worker(report)) = read(&status.encode_to_vec()) else { panic!() };
    assert_eq!(report.message.len(), 4096);
    for status in [
        proto::WorkflowActionStatus { task_name: long(513), ..older(proto::State::Failed) },
        proto::WorkflowActionStatus { worker_id: long(513), ..older(proto::State::Failed) },
        proto::WorkflowActionStatus { action_name: "a\nb".into(), ..older(proto::State::Failed) },
    ] {
        assert!(matches!(read(&status.encode_to_vec()), Err(Refusal::InvalidArgument(_))));
    }
}

#[test]
fn a_turn_is_told_as_not_begun() {
    let turn = Turn {
        workflow_id: "tink/wf".to_owned(),
        worker_id: "w1".to_owned(),
        task_name: "install".to_owned(),
        action_name: "write".to_owned(),
        index: 2,
        total: 5,
    };
    let context = proto::WorkflowContext::from(turn);
    assert_eq!((context.current_action_index, context.total_number_of_actions), (2, 5));
    assert_eq!(context.current_action_state, 0);
    let action = ListedAction {
        name: "write".to_owned(),
        command: vec!["secret".to_owned()],
        environment: vec!["TOKEN=secret".to_owned()],
        ..ListedAction::default()
    };
    assert!(!format!("{action:?}").contains("secret"));
    let list = ActionList { worker_id: "w1".to_owned(), actions: vec![action] };
    let list = proto::WorkflowActionList::from(list);
    assert_eq!(list.action_list[0].environment, ["TOKEN=secret"]);
}
