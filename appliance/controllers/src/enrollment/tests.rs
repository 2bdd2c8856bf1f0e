//! Tests of agent reports and their results.

use agent_rpc::{AgentReport, Attributes, Block, Network};
use api::identity::Verdict;
use api::meta::ObjectKey;
use serde_json::Value;

use super::inventory::annotations;
use super::{AGENT_ATTRIBUTES, ReportInbox, resembling};

fn stranger(agent_id: &str, macs: &[&str]) -> AgentReport {
    let network = |mac: &&str| Network { mac: Some((*mac).to_owned()), ..Network::default() };
    let disk = |name: &str, size: Option<&str>| Block {
        name: Some(name.to_owned()),
        size: size.map(str::to_owned),
        ..Block::default()
    };
    let attributes = Attributes {
        network: macs.iter().map(network).collect(),
        block: vec![disk("nvme0n1", Some("512GB")), disk("sr0", None)],
        ..Attributes::default()
    };
    AgentReport { agent_id: agent_id.to_owned(), attributes: Some(attributes), inventory: None }
}

fn hardware(report: &AgentReport) -> Option<Value> {
    super::hardware(report, &annotations(report), false)
}

#[test]
fn what_an_agent_says_becomes_hardware() {
    let macs = ["00:00:00:00:00:00", "52:54:00:77:00:02", "52:54:00:77:00:01"];
    let object = hardware(&stranger("52:54:00:77:00:01", &macs)).unwrap();
    assert_eq!(object["metadata"]["name"], "discovery-52-54-00-77-00-01");
    assert_eq!(object["metadata"]["labels"]["tinkerbell.org/auto-discovered"], "true");
    assert_eq!(object["spec"]["agentID"], "52:54:00:77:00:01");
    let instance = &object["spec"]["metadata"]["instance"];
    assert_eq!(instance["id"], "52:54:00:77:00:01");
    assert_eq!(instance["hostname"], "discovery-52-54-00-77-00-01");
    let interfaces = object["spec"]["interfaces"].as_array().unwrap();
    let macs: Vec<_> = interfaces.iter().map(|it| it["dhcp"]["mac"].as_str().unwrap()).collect();
    assert_eq!(macs, ["52:54:00:77:00:01"], "it may name MACs of other machines");
    assert_eq!(interfaces[0]["netboot"]["allowPXE"], true);
    assert_eq!(object["spec"]["disks"], serde_json::json!([{ "device": "/dev/nvme0n1" }]));
    let attributes = object["metadata"]["annotations"][AGENT_ATTRIBUTES].as_str().unwrap();
    assert!(attributes.contains("\"networkInterfaces\""), "{attributes}");
}

#[test]
fn an_agent_that_does_not_go_by_a_mac_is_nobody() {
    assert!(hardware(&stranger("somebody", &[])).is_none());
    assert!(hardware(&stranger("Rack 7/Nuc", &["52:54:00:77:00:01"])).is_none());
}

#[test]
fn only_where_rule_sets_work_may_a_discovered_machine_enrol() {
    let report = stranger("52:54:00:77:00:01", &[]);
    let spec = |enrollment| super::hardware(&report, &annotations(&report), enrollment).unwrap();
    assert_eq!(spec(false)["spec"].get("auto"), None);
    assert_eq!(spec(true)["spec"]["auto"]["enrollmentEnabled"], true);
}

#[test]
fn an_owner_reads_who_came_back_and_what_to_do() {
    let mac = "52:54:00:77:00:99";
    let key = |name: &str| ObjectKey::new("default", name);
    assert_eq!(resembling(&Verdict::Nobody, mac), []);
    let same = vec!["UUID 7".to_owned(), "disk s4ev".to_owned()];
    let resembled = resembling(&Verdict::One(key("nuc1"), same), mac);
    let sentence = "returned with the unknown MAC 52:54:00:77:00:99, recognized by its UUID 7, \
                    disk s4ev: if its NIC was replaced, run tinbox machine adopt nuc1 \
                    52:54:00:77:00:99";
    assert_eq!(resembled, [(key("nuc1"), sentence.to_owned())]);
    let both = resembling(&Verdict::Several(vec![key("a"), key("b")]), mac);
    assert_eq!(both.len(), 2, "both owners are told");
    assert!(both[0].1.contains("default/a, default/b"), "{}", both[0].1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_repeats_itself_is_heard_now_and_then() {
    let (inbox, reports) = ReportInbox::new();
    let say = || inbox.repeated(stranger("52:54:00:77:00:01", &[]));
    say();
    say();
    assert!(reports.take().is_some() && reports.take().is_none());
    tokio::time::advance(super::ONCE_EVERY).await;
    say();
    assert!(reports.take().is_some());
}
