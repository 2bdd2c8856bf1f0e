//! Tests of a Hardware's references in templates.

use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Reference, TEMPLATE};
use serde_json::{Value, json};

use super::{FakeAgents, TEMPLATE_TEXT, World};
use crate::workflow::References;
use objects::Objects as _;
use objects::{ObjectError, Pending};

/// Fake with one existing object, one missing object, and no access to all others.
impl References for FakeAgents {
    fn read<'a>(&'a self, from: &'a ObjectKey, to: &'a Reference) -> Pending<'a, Value> {
        assert_eq!(from.to_string(), "default/nuc1");
        Box::pin(async move {
            match to.name.as_str() {
                "lvm" => Ok(json!({ "spec": { "group": "vg0" } })),
                "none" => Err(ObjectError::NotFound("lvms none".to_owned())),
                _ => Err(ObjectError::Invalid("no rule allows it".to_owned())),
            }
        })
    }
}

#[tokio::test]
async fn a_template_reads_what_its_hardware_refers_to() {
    let world = World::new(json!({}));
    let refer = |name: &str| json!({ "resource": "lvms", "namespace": "a", "name": name });
    let mut hardware = world.memory.peek(HARDWARE, "nuc1").unwrap();
    hardware["spec"]["references"] = json!({ "lvm": refer("lvm"), "off": refer("secret") });
    world.memory.update(HARDWARE, hardware.clone()).await.unwrap();
    let template = |field: &str| {
        let text = TEMPLATE_TEXT.replace("image2disk:v1", &format!("{{{{ {field} }}}}:v1"));
        let key = json!({ "name": "install", "namespace": "default" });
        world.memory.put(TEMPLATE, json!({ "metadata": key, "spec": { "data": text } }));
    };
    template(".references.off.data");
    world.settle().await;
    let message = world.condition("TemplateRenderedSuccess")["message"].to_string();
    assert!(message.contains("reference off is not allowed: no rule allows it"), "{message}");
    hardware["spec"]["references"] = json!({ "lvm": refer("lvm"), "off": refer("none") });
    hardware["metadata"] = world.memory.peek(HARDWARE, "nuc1").unwrap()["metadata"].clone();
    world.memory.update(HARDWARE, hardware).await.unwrap();
    world.settle().await;
    let message = world.condition("TemplateRenderedSuccess")["message"].to_string();
    assert!(message.contains("reference off: lvms a/none does not exist"), "{message}");
    template(".references.lvm.spec.group");
    world.settle().await;
    assert_eq!(world.workflow()["status"]["tasks"][0]["actions"][0]["image"], "vg0:v1");
}
