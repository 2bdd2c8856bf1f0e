use std::sync::Arc;

use api::meta::Resource;
use api::network::NETWORK;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use objects::Objects as _;
use objects::fake::Memory;
use serde_json::{Value, json};

use super::{EditError, StoredTemplate, TemplateEditor};

const TEXT: &str = "version: \"0.1\"\nname: a\nglobal_timeout: 60\ntasks:\n- name: t\n  \
                    worker: \"{{.device_1}}\"\n  actions:\n  - {name: x, image: y, timeout: 9}\n";

fn world() -> (Arc<Memory>, TemplateEditor) {
    let memory = Arc::new(Memory::default());
    let put = |kind: Resource, name: &str, spec: Value, status: Value| {
        let metadata = json!({ "name": name, "namespace": "default" });
        memory.put(kind, json!({ "metadata": metadata, "spec": spec, "status": status }));
    };
    put(TEMPLATE, "a", json!({ "data": TEXT }), json!({}));
    let uses = json!({ "templateRef": "a", "hardwareRef": "nuc1" });
    put(WORKFLOW, "w1", uses.clone(), json!({ "state": "SUCCESS" }));
    put(WORKFLOW, "w2", uses, json!({ "state": "RUNNING" }));
    let dhcp = json!({ "mac": "52:54:00:77:00:01" });
    put(HARDWARE, "nuc1", json!({ "interfaces": [{ "dhcp": dhcp }] }), json!({}));
    let network = json!({ "interface": "eth1", "address": "10.77.0.1/24", "mode": "reserved" });
    memory.put(NETWORK, json!({ "metadata": { "name": "eth1" }, "spec": network }));
    (memory.clone(), TemplateEditor::new(memory))
}

#[tokio::test]
async fn templates_are_listed_with_their_use() {
    let (_, editor) = world();
    let list = editor.list().await.unwrap();
    assert_eq!((list.len(), list[0].workflows, list[0].running), (1, 2, 1));
    assert!(editor.library(&list).iter().any(|it| it.name == "debian"));
    editor.add("debian").await.unwrap();
    let list = editor.list().await.unwrap();
    assert!(!editor.library(&list).iter().any(|it| it.name == "debian"));
    let debian = editor.find("debian").await.unwrap().unwrap();
    assert!(debian.text.contains("10.77.0.1"), "the address of the serving network");
}

#[tokio::test]
async fn a_text_is_stored_only_over_the_one_that_was_read() {
    let (memory, editor) = world();
    let read = editor.find("a").await.unwrap().unwrap();
    let changed = StoredTemplate { text: TEXT.replace("60", "90"), ..read };
    editor.save(&changed).await.unwrap();
    let late = editor.save(&changed).await.unwrap_err();
    assert!(matches!(late, EditError::Changed(_)), "{late:?}");
    let large = StoredTemplate { text: "x".repeat(1 << 20), ..changed };
    assert!(matches!(editor.save(&large).await, Err(EditError::TooLarge(_))));
    let stored = memory.list(TEMPLATE, None).await.unwrap();
    assert_eq!(stored[0]["spec"]["data"], TEXT.replace("60", "90"));
}

#[tokio::test]
async fn a_template_in_use_is_not_deleted() {
    let (_, editor) = world();
    let refused = editor.delete("a").await.unwrap_err();
    assert_eq!(refused.to_string(), "template a is used by w2");
    editor.create("b", TEXT).await.unwrap();
    editor.delete("b").await.unwrap();
    assert_eq!(editor.find("b").await.unwrap(), None);
    for name in ["", "Debian", "-a", "a/b", &"a".repeat(300)] {
        assert!(matches!(editor.create(name, TEXT).await, Err(EditError::Name(_))), "{name}");
    }
}

#[tokio::test]
async fn a_text_is_rendered_for_a_machine() {
    let (_, editor) = world();
    let rendered = editor.render(TEXT, "nuc1").await.unwrap();
    assert!(rendered.contains("worker: \"52:54:00:77:00:01\""), "{rendered}");
    let wrong = editor.render("name: {{ .x", "nuc1").await.unwrap_err();
    assert!(matches!(wrong, EditError::Render { .. }), "{wrong:?}");
    assert!(matches!(editor.render(TEXT, "nuc9").await, Err(EditError::Object(_))));
}
