//! Templates that are changed in place, though their machines keep the former spec.

use api::infrastructure::TINKERBELL_MACHINE;
use serde_json::{Value, json};

use super::{World, condition, host, rack, world};

/// Change of the annotations of a machine.
type Change = fn(&mut Value);

/// Creates a machine that Cluster API made from the template with its current spec.
fn add_machine(world: &World, name: &str) {
    let mut spec = world.object()["spec"]["template"]["spec"].clone();
    spec["hardwareName"] = json!("nuc-1");
    spec["providerID"] = json!("tinkerbell://default/nuc-1");
    let annotations = json!({
        "cluster.x-k8s.io/cloned-from-name": "t",
        "cluster.x-k8s.io/cloned-from-groupkind":
            "TinkerbellMachineTemplate.infrastructure.cluster.x-k8s.io",
    });
    let metadata = json!({ "name": name, "namespace": "default", "annotations": annotations });
    world.remote.put(TINKERBELL_MACHINE, json!({ "metadata": metadata, "spec": spec }));
}

fn edit_machine(world: &World, name: &str, change: impl FnOnce(&mut Value)) {
    let mut machine = world.remote.peek(TINKERBELL_MACHINE, name).unwrap();
    change(&mut machine);
    world.remote.put(TINKERBELL_MACHINE, machine);
}

fn up_to_date(object: &Value) -> [&str; 3] {
    condition(object, "MachinesUpToDate")
}

#[tokio::test]
async fn a_change_in_place_names_the_machines_that_keep_the_former_spec() {
    let world = world(rack("a"));
    world.add([host("nuc-1", "a", 4, "8GB")]);
    assert_eq!(up_to_date(&world.run().await), ["True", "MachinesUpToDate", ""]);
    for number in 1..=7 {
        add_machine(&world, &format!("m{number}"));
    }
    assert_eq!(up_to_date(&world.run().await)[0], "True");
    assert_eq!(world.events(), ["HardwareAvailable"]);

    world.edit(|it| it["spec"]["template"]["spec"]["osImage"] = json!("debian-13"));
    add_machine(&world, "new");
    let changed = world.run().await;
    let [status, reason, message] = up_to_date(&changed);
    assert_eq!((status, reason), ("False", "ChangedInPlace"));
    assert!(message.contains("from this template: m1, m2, m3, m4, m5 and 2 more;"), "{message}");
    assert!(message.contains("make another TinkerbellMachineTemplate"), "{message}");
    assert_eq!(condition(&changed, "Ready")[0], "True");
    assert_eq!(world.events(), ["ChangedInPlace!"]);
    assert_eq!(world.run().await, changed);
    assert_eq!(world.events(), [""; 0]);

    // A rollout replaces the machines one by one.
    for number in 1..=6 {
        edit_machine(&world, &format!("m{number}"), |machine| {
            machine["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:00Z");
            machine["metadata"]["finalizers"] = json!(["x"]);
        });
    }
    let object = world.run().await;
    assert!(up_to_date(&object)[2].contains("from this template: m7;"), "{object}");
    edit_machine(&world, "m7", |machine| machine["spec"]["osImage"] = json!("debian-13"));
    assert_eq!(up_to_date(&world.run().await), ["True", "MachinesUpToDate", ""]);
    assert_eq!(world.events(), ["MachinesUpToDate"]);
}

#[tokio::test]
async fn machines_of_other_templates_do_not_count() {
    let world = world(rack("a"));
    let others: [(&str, Change); 3] = [
        ("of-another", |annotations| {
            annotations["cluster.x-k8s.io/cloned-from-name"] = json!("other");
        }),
        ("of-another-kind", |annotations| {
            annotations["cluster.x-k8s.io/cloned-from-groupkind"] = json!("Other.example.org");
        }),
        ("by-hand", |annotations| *annotations = json!({})),
    ];
    for (name, change) in others {
        add_machine(&world, name);
        edit_machine(&world, name, |machine| change(&mut machine["metadata"]["annotations"]));
    }
    world.edit(|it| it["spec"]["template"]["spec"]["osImage"] = json!("debian-13"));
    assert_eq!(up_to_date(&world.run().await)[1], "MachinesUpToDate");
    // A template can be restored as well.
    add_machine(&world, "m1");
    edit_machine(&world, "m1", |machine| machine["spec"]["osImage"] = json!("debian-12"));
    assert_eq!(up_to_date(&world.run().await)[1], "ChangedInPlace");
    world.edit(|it| it["spec"]["template"]["spec"]["osImage"] = json!("debian-12"));
    assert_eq!(up_to_date(&world.run().await)[1], "MachinesUpToDate");
}
