//! Tests of the conversion, with the bytes of stock Tinkerbell agents, built field by field.

use prost::Message as _;

use super::proto::{ActionRequest, ActionResponse, ActionStatusRequest};
use super::{ATTRIBUTES_BYTES, TEXT_BYTES, attributes, id};
use crate::message::{ActionState, Assignment, Namespaces, Refusal, Report};
use crate::{Attributes, Block, Network};

/// Encodes a length-delimited field (wire type 2).
fn text(tag: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let mut bytes = vec![tag << 3 | 2];
    prost::encode_length_delimiter(value.len(), &mut bytes).unwrap();
    bytes.extend(value);
    bytes
}

/// Encodes a varint field (wire type 0) with a value below 128.
fn number(tag: u8, value: u8) -> Vec<u8> {
    vec![tag << 3, value]
}

fn stock_report() -> Vec<u8> {
    // Seconds -62135596800, what Go's zero time becomes.
    let mut zero_time = vec![0x08];
    prost::encoding::encode_varint((-62_135_596_800_i64).cast_unsigned(), &mut zero_time);
    [
        text(1, "default/wf"),
        text(2, "52:54:00:77:00:01"),
        text(3, "task-1"),
        text(4, "action-1"),
        text(5, "stream image"),
        number(6, 2),
        text(7, &zero_time),
        text(8, [0x08, 100, 0x10, 5]),
        text(9, "1m2s"),
        text(10, text(1, "running action")),
    ]
    .concat()
}

#[test]
fn a_stock_report_is_understood() {
    let report = ActionStatusRequest::decode(stock_report().as_slice()).unwrap();
    let report = Report::try_from(report).unwrap();
    assert_eq!(
        report,
        Report {
            workflow_id: "default/wf".into(),
            agent_id: "52:54:00:77:00:01".into(),
            task_id: "task-1".into(),
            action_id: "action-1".into(),
            action_name: "stream image".into(),
            state: ActionState::Running,
            start: None,
            stop: Some("1970-01-01T00:01:40.000000005Z".parse().unwrap()),
            duration: "1m2s".into(),
            message: "running action".into(),
        }
    );
    let again = ActionStatusRequest::from(report).encode_to_vec();
    let again = ActionStatusRequest::decode(again.as_slice()).unwrap();
    assert_eq!(again.action_state, Some(2));
}

#[test]
fn every_state_has_its_number() {
    for (value, state) in [
        (1, ActionState::Pending),
        (2, ActionState::Running),
        (3, ActionState::Failed),
        (4, ActionState::Timeout),
        (5, ActionState::Success),
    ] {
        let bytes = [text(1, "w"), text(3, "t"), text(4, "a"), number(6, value)].concat();
        let report = ActionStatusRequest::decode(bytes.as_slice()).unwrap();
        assert_eq!(Report::try_from(report).unwrap().state, state);
    }
    for rest in [vec![], number(6, 0), number(6, 9)] {
        let bytes = [text(1, "w"), text(3, "t"), text(4, "a"), rest].concat();
        let report = ActionStatusRequest::decode(bytes.as_slice()).unwrap();
        assert!(matches!(Report::try_from(report), Err(Refusal::InvalidArgument(_))));
    }
}

#[test]
fn an_assignment_has_the_stock_field_numbers() {
    let bytes = ActionResponse::from(Assignment {
        workflow_id: "ns/wf".into(),
        task_id: "t".into(),
        agent_id: "a".into(),
        action_id: "x".into(),
        name: "n".into(),
        image: "i".into(),
        timeout_secs: 90,
        command: vec!["c1".into(), "c2".into()],
        volumes: vec!["/dev:/dev".into()],
        environment: vec!["A=1".into()],
        pid: "host".into(),
        namespaces: Some(Namespaces { network: "host".into(), pid: "host".into() }),
        ..Assignment::default()
    })
    .encode_to_vec();
    let expected = [
        text(1, "ns/wf"),
        text(2, "t"),
        text(3, "a"),
        text(4, "x"),
        text(5, "n"),
        text(6, "i"),
        number(7, 90),
        text(8, "c1"),
        text(8, "c2"),
        text(9, "/dev:/dev"),
        text(10, "A=1"),
        text(11, "host"),
        text(12, [text(1, "host"), text(2, "host")].concat()),
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn attributes_are_json_as_rule_sets_match_it() {
    let block = [text(1, "sda"), text(4, "500GB"), text(9, "S1")].concat();
    let network = [text(1, "eth0"), text(2, "52:54:00:77:00:01")].concat();
    let cpu = [number(1, 4), number(2, 8), text(3, [number(1, 0), text(5, "M")].concat())].concat();
    let body = [text(1, cpu), text(3, block), text(4, network), text(8, text(3, "2026"))].concat();
    let bytes = [text(1, "agent"), text(2, body)].concat();
    let request = ActionRequest::decode(bytes.as_slice()).unwrap();
    let json = serde_json::to_value(request.agent_attributes.unwrap()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "cpu": {"totalCores": 4, "totalThreads": 8, "processors": [{"id": 0, "model": "M"}]},
            "blockDevices": [{"name": "sda", "size": "500GB", "serialNumber": "S1"}],
            "networkInterfaces": [{"name": "eth0", "mac": "52:54:00:77:00:01"}],
            "bios": {"releaseDate": "2026"},
        })
    );
    let back: Attributes = serde_json::from_value(json).unwrap();
    assert_eq!(
        back.block,
        [Block {
            name: Some("sda".into()),
            size: Some("500GB".into()),
            serial_number: Some("S1".into()),
            ..Block::default()
        }]
    );
}

#[test]
fn what_is_too_long_is_refused_or_cut() {
    assert!(matches!(id("agent id", None), Err(Refusal::InvalidArgument(_))));
    assert!(id("agent id", Some("a".repeat(513))).is_err());
    assert!(id("agent id", Some("a\nb".into())).is_err());
    assert_eq!(id("agent id", Some("a".into())), Ok("a".into()));
    let long = super::text("é".repeat(TEXT_BYTES));
    assert!(long.len() <= TEXT_BYTES && long.ends_with('é'));
    let network = Network { name: Some("x".repeat(ATTRIBUTES_BYTES)), ..Network::default() };
    let big = Attributes { network: vec![network], ..Attributes::default() };
    assert!(attributes(Some(big)).is_err());
}

#[test]
fn an_inventory_is_bounded_and_kept_as_json() {
    use super::tinbox::v1::HelloRequest;
    use crate::message::Hello;
    use crate::{Inventory, MemoryModule};

    let module = |slot: &str| MemoryModule {
        slot: slot.to_owned(),
        bytes: 8 << 30,
        ..MemoryModule::default()
    };
    let hello = |inventory| {
        let agent_id = "a".to_owned();
        Hello::try_from(HelloRequest { agent_id, inventory, ..HelloRequest::default() })
    };
    let one = Inventory { memory: vec![module("DIMM 0")], ..Inventory::default() };
    let kept = hello(Some(one.clone())).unwrap().inventory.unwrap();
    let json = serde_json::to_value(&kept).unwrap();
    let expected = serde_json::json!({ "memory": [{ "slot": "DIMM 0", "bytes": 8_u64 << 30 }] });
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<Inventory>(json).unwrap(), one);
    let long = "x".repeat(super::INVENTORY_BYTES);
    let many = Inventory { memory: vec![module(&long)], ..Inventory::default() };
    assert!(matches!(hello(Some(many)), Err(Refusal::InvalidArgument(_))));
}

#[test]
fn foreign_bytes_never_panic() {
    let report = stock_report();
    for at in 0..report.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = report.clone();
            bytes[at] = value;
            if let Ok(message) = ActionStatusRequest::decode(bytes.as_slice()) {
                let _ = Report::try_from(message);
            }
            let _ = ActionStatusRequest::decode(&report[..at]).map(Report::try_from);
        }
    }
}
