//! Tests of the choice of a rule set and of its Workflow.

use api::tinkerbell::{AGENT_ATTRIBUTES, Hardware, WorkflowRuleSet};
use serde_json::{Value, json};

use super::{choose, name, workflow};

fn set(name: &str, rules: &[&str]) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}") },
        "spec": {
            "rules": rules,
            "workflow": {
                "addAttributes": true,
                "template": { "ref": "debian", "agentValue": "device_1", "kvs": { "disk": "sda" } },
            },
        },
    })
}

fn attributes() -> Value {
    json!({
        "product": { "name": "NUC11TNHi5" },
        "blockDevices": [{ "name": "nvme0n1", "driveType": "SSD" }],
    })
}

const NUC: &str = r#"{"product": {"name": [{"prefix": "NUC"}]}}"#;
const SSD: &str = r#"{"blockDevices": {"driveType": ["SSD"]}}"#;
const HDD: &str = r#"{"blockDevices": {"driveType": ["HDD"]}}"#;

fn chosen(sets: Vec<Value>) -> Option<String> {
    let (set, mistakes) = choose(sets, &attributes());
    assert_eq!(mistakes, []);
    set.map(|set| set.metadata.name)
}

#[test]
fn the_set_with_the_most_fitting_rules_wins() {
    assert_eq!(chosen(vec![]), None);
    assert_eq!(chosen(vec![set("disks", &[HDD])]), None);
    let sets = vec![set("one", &[NUC, HDD]), set("two", &[NUC, SSD])];
    assert_eq!(chosen(sets).as_deref(), Some("two"));
    let equal = vec![set("b", &[NUC]), set("a", &[SSD])];
    assert_eq!(chosen(equal).as_deref(), Some("a"), "the first by name");
}

#[test]
fn a_set_with_a_mistake_makes_nothing_and_its_owner_is_told() {
    let bad = set("bad", &[NUC, SSD, r#"{"product": "NUC"}"#]);
    let (best, mistakes) = choose(vec![bad, set("good", &[NUC])], &attributes());
    assert_eq!(best.unwrap().metadata.name, "good");
    let [mistake] = &mistakes[..] else { panic!("{mistakes:?}") };
    assert_eq!(mistake.key.name, "bad");
    let sentence = "rule 2 cannot be used: \"product\": expected an array of allowed values \
                    such as [\"…\"], found a string; correct it";
    assert_eq!(mistake.sentence, sentence);
    let many = vec![NUC; super::RULES_MAX + 1];
    let (best, mistakes) = choose(vec![set("many", &many)], &attributes());
    assert!(best.is_none() && mistakes[0].sentence.contains("257 rules"), "{mistakes:?}");
}

fn typed(set: Value) -> WorkflowRuleSet {
    serde_json::from_value(set).unwrap()
}

#[test]
fn a_workflow_is_made_as_tinkerbell_makes_it() {
    let mut hardware = Hardware::default();
    hardware.metadata.name = "nuc1".into();
    hardware.metadata.namespace = "default".into();
    let id = "52:54:00:77:00:01";
    let made = workflow(&typed(set("nucs", &[NUC])), id, Some(&hardware), "{}").unwrap();
    assert_eq!(
        made,
        json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Workflow",
            "metadata": {
                "name": "enrollment-52-54-00-77-00-01",
                "namespace": "default",
                "labels": { "tinkerbell.org/auto-enrollment": "true" },
                "annotations": { AGENT_ATTRIBUTES: "{}" },
                "ownerReferences": [{
                    "apiVersion": "tinkerbell.org/v1alpha1",
                    "kind": "WorkflowRuleSet",
                    "name": "nucs",
                    "uid": "uid-nucs",
                }],
            },
            "spec": {
                "templateRef": "debian",
                "hardwareRef": "nuc1",
                "hardwareMap": { "device_1": id, "disk": "sda" },
            },
        })
    );
    let stranger = workflow(&typed(set("nucs", &[NUC])), id, None, "{}").unwrap();
    assert_eq!(stranger["spec"].get("hardwareRef"), None);
}

#[test]
fn what_cannot_be_made_is_said() {
    let mut elsewhere = typed(set("nucs", &[NUC]));
    elsewhere.spec.workflow.namespace = "rack2".into();
    let mut hardware = Hardware::default();
    hardware.metadata.namespace = "default".into();
    let error = workflow(&elsewhere, "x", Some(&hardware), "{}").unwrap_err();
    assert!(error.contains("another namespace, rack2"), "{error}");
    let made = workflow(&elsewhere, "x", None, "{}").unwrap();
    assert_eq!(made["metadata"].get("ownerReferences"), None);
    elsewhere.spec.workflow.template.name.clear();
    assert!(workflow(&elsewhere, "x", None, "{}").unwrap_err().contains("template.ref"));
}

#[test]
fn an_agent_id_becomes_a_name() {
    assert_eq!(name("Rack 7/Nuc_"), "enrollment-rack-7-nuc");
    assert_eq!(name(&"ü".repeat(99)), "enrollment");
    assert_eq!(name(&"x".repeat(99)).len(), 63);
}
