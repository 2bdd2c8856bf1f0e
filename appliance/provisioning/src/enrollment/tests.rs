//! Tests of enrollment with a real store: an unknown machine becomes a Hardware, and a rule set
//! creates its Workflow.

use std::sync::Arc;

use agent_rpc::{AgentReport, Attributes, Block, Inventory, Network};
use api::core::CONFIG_MAP;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{AGENT_ATTRIBUTES, HARDWARE, WORKFLOW, WORKFLOW_RULE_SET};
use controllers::enrollment::{ENROLLED, Enrollment, INVENTORY, Memory, UNACCEPTED_MAX};
use objects::read;
use resources::{Engine, ListOptions, builtin};
use serde_json::{Value, json};
use stdx::SystemClock;
use store::{Options, Store};
use tokio_util::sync::CancellationToken;

use crate::index::Index;
use crate::objects::EngineObjects;
use crate::objects::recorder::{Writer, recorder};

const MAC: &str = "52:54:00:77:00:01";

struct Tinbox {
    _folder: tempfile::TempDir,
    controller: Enrollment,
    index: Index,
    engine: Engine,
    writer: Option<Writer>,
    memory: Memory,
}

impl Tinbox {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
        let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(SystemClock));
        engine.ensure_permanent().await.unwrap();
        let (recorder, writer) = recorder();
        let index = Index::default();
        let controller = Enrollment {
            objects: Arc::new(EngineObjects { engine: engine.clone(), recorder }),
            index: Arc::new(index.clone()),
            clock: Arc::new(SystemClock),
            enrollment: true,
        };
        index.set_enrolls("eth0", true);
        let memory = Memory::default();
        Self { _folder: folder, controller, index, engine, writer: Some(writer), memory }
    }

    /// Processes a report of an agent, and updates the index.
    async fn receive(&mut self, report: AgentReport) {
        self.controller.deal(&report, &mut self.memory).await.unwrap();
        for object in self.all(HARDWARE).await {
            self.index.put_hardware(read(object).unwrap());
        }
    }

    async fn all(&self, resource: Resource) -> Vec<Value> {
        self.controller.objects.list(resource, None).await.unwrap()
    }

    async fn create(&self, resource: Resource, object: Value) {
        self.controller.objects.create(resource, object).await.unwrap();
    }

    /// Returns reasons and messages of the recorded Events.
    async fn events(&mut self) -> Vec<(String, String)> {
        let stopped = CancellationToken::new();
        stopped.cancel();
        // The stopped writer first writes the waiting Events.
        self.writer.take().unwrap().run(self.engine.clone(), stopped).await;
        let events = self.engine.list("/events", Some("default"), ListOptions::default()).await;
        let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
        let events = events.unwrap().items.into_iter();
        events.map(|it| (text(&it, "reason"), text(&it, "message"))).collect()
    }
}

fn report_of(mac: &str) -> AgentReport {
    let network = Network { mac: Some(mac.to_owned()), ..Network::default() };
    let disk = Block {
        name: Some("nvme0n1".to_owned()),
        drive_type: Some("SSD".to_owned()),
        size: Some("512GB".to_owned()),
        ..Block::default()
    };
    let uuid = "4c4c4544-0042-3510-8051-b2c04f4e3032".to_owned();
    AgentReport {
        agent_id: mac.to_owned(),
        attributes: Some(Attributes {
            network: vec![network],
            block: vec![disk],
            ..Attributes::default()
        }),
        inventory: Some(Inventory { uuid, ..Inventory::default() }),
    }
}

fn rules(name: &str, pattern: &str) -> Value {
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "WorkflowRuleSet",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "rules": [pattern],
            "workflow": {
                "namespace": "default",
                "template": { "ref": "debian", "agentValue": "device_1" },
            },
        },
    })
}

#[tokio::test]
async fn a_stranger_is_enrolled_once() {
    let mut tinbox = Tinbox::start().await;
    tinbox.receive(report_of(MAC)).await;
    let [hardware] = &tinbox.all(HARDWARE).await[..] else { panic!("no Hardware") };
    let annotations = &hardware["metadata"]["annotations"];
    assert!(annotations[AGENT_ATTRIBUTES].is_string() && annotations[INVENTORY].is_string());
    assert_eq!(hardware["spec"]["auto"]["enrollmentEnabled"], true);
    assert!(tinbox.all(WORKFLOW).await.is_empty(), "there is no rule set");

    tinbox.create(WORKFLOW_RULE_SET, rules("hdds", "{\"cpu\": {\"totalCores\": [64]}}")).await;
    let ssd = "{\"blockDevices\": {\"driveType\": [\"SSD\"], \"name\": [{\"prefix\": \"nvme\"}]}}";
    tinbox.create(WORKFLOW_RULE_SET, rules("ssds", ssd)).await;
    // The agent waits in its OS and reports no new data.
    let asks = || AgentReport { agent_id: MAC.to_owned(), attributes: None, inventory: None };
    tinbox.receive(asks()).await;
    let [workflow] = &tinbox.all(WORKFLOW).await[..] else { panic!("no Workflow") };
    assert_eq!(workflow["metadata"]["name"], "enrollment-52-54-00-77-00-01");
    assert_eq!(workflow["metadata"]["ownerReferences"][0]["name"], "ssds");
    assert_eq!(workflow["spec"]["hardwareRef"], "discovery-52-54-00-77-00-01");
    assert_eq!(workflow["spec"]["hardwareMap"]["device_1"], MAC);
    let [hardware] = &tinbox.all(HARDWARE).await[..] else { panic!("no Hardware") };
    let mark = "default/enrollment-52-54-00-77-00-01";
    assert_eq!(hardware["metadata"]["annotations"][ENROLLED], mark);

    // A machine is never installed again because its Workflow was deleted.
    let key = ObjectKey::new("default", "enrollment-52-54-00-77-00-01");
    tinbox.controller.objects.delete(WORKFLOW, &key).await.unwrap();
    tinbox.receive(asks()).await;
    tinbox.receive(report_of(MAC)).await;
    assert!(tinbox.all(WORKFLOW).await.is_empty());
}

#[tokio::test]
async fn nothing_is_made_where_nobody_allowed_it() {
    let mut tinbox = Tinbox::start().await;
    tinbox.create(WORKFLOW_RULE_SET, rules("all", "{\"gone\": [{\"exists\": false}]}")).await;
    tinbox.controller.enrollment = false;
    tinbox.receive(report_of(MAC)).await;
    assert!(tinbox.all(WORKFLOW).await.is_empty());
    tinbox.controller.enrollment = true;
    tinbox.receive(report_of(MAC)).await;
    assert!(tinbox.all(WORKFLOW).await.is_empty(), "its Hardware does not say so");
    tinbox.index.set_enrolls("eth0", false);
    tinbox.receive(report_of("52:54:00:aa:00:01")).await;
    assert_eq!(tinbox.all(HARDWARE).await.len(), 1, "no network takes strangers");
}

#[tokio::test]
async fn a_machine_with_a_new_card_is_no_second_machine() {
    let mut tinbox = Tinbox::start().await;
    tinbox.receive(report_of(MAC)).await;
    let written = tinbox.all(HARDWARE).await;
    for _ in 0..2 {
        tinbox.receive(report_of("52:54:00:77:00:99")).await;
    }
    assert_eq!(tinbox.all(HARDWARE).await, written, "nothing is rewritten");
    let events = tinbox.events().await;
    let [(reason, message)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(reason, "Resembles");
    let adopt = "tinbox machine adopt discovery-52-54-00-77-00-01 52:54:00:77:00:99";
    assert!(message.contains("UUID 4c4c4544") && message.contains(adopt), "{message}");
}

#[tokio::test]
async fn a_rule_set_that_cannot_be_used_is_told_once() {
    let mut tinbox = Tinbox::start().await;
    let mut unfinished = rules("all", "{\"gone\": [{\"exists\": false}]}");
    unfinished["spec"]["workflow"]["template"]["ref"] = "".into();
    tinbox.create(WORKFLOW_RULE_SET, unfinished).await;
    for _ in 0..2 {
        tinbox.receive(report_of(MAC)).await;
    }
    assert!(tinbox.all(WORKFLOW).await.is_empty());
    let events = tinbox.events().await;
    let [(reason, message)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(reason, "BadRule");
    assert!(message.starts_with("spec.workflow.template.ref is empty"), "{message}");
}

#[tokio::test]
async fn a_machine_that_names_many_macs_claims_its_own_and_the_eldest_of_too_many_goes() {
    let mut tinbox = Tinbox::start().await;
    tinbox.controller.enrollment = false;
    for number in 0..UNACCEPTED_MAX + 2 {
        let mut report = report_of(&format!("52:54:00:66:00:{number:02x}"));
        report.inventory = None;
        if number == UNACCEPTED_MAX + 1 {
            let victim = Network { mac: Some(MAC.to_owned()), ..Network::default() };
            report.attributes.as_mut().unwrap().network.push(victim);
        }
        // The new memory removes the limit of one record a minute.
        tinbox.memory = Memory::default();
        tinbox.receive(report).await;
    }
    let all = tinbox.all(HARDWARE).await;
    assert_eq!(all.len(), UNACCEPTED_MAX);
    assert!(all.iter().all(|it| it["spec"]["interfaces"][0]["dhcp"]["mac"] != MAC));
    assert!(all.iter().all(|it| it["spec"]["interfaces"].as_array().unwrap().len() == 1));
}

#[tokio::test]
async fn an_ignored_machine_is_not_enrolled_until_a_person_shows_it_again() {
    let mut tinbox = Tinbox::start().await;
    let name = json!({ "name": "dismissed", "namespace": "default" });
    let data = json!({ "machine.52-54-00-77-00-01": "ignored" });
    tinbox.create(CONFIG_MAP, json!({ "metadata": name, "data": data })).await;
    tinbox.receive(report_of(MAC)).await;
    assert_eq!(tinbox.all(HARDWARE).await, Vec::<Value>::new());
    let key = ObjectKey::new("default", "dismissed");
    tinbox.controller.objects.delete(CONFIG_MAP, &key).await.unwrap();
    tinbox.receive(report_of(MAC)).await;
    assert_eq!(tinbox.all(HARDWARE).await.len(), 1);
}
