//! Settings of the cluster, of the template and of the machine itself: which one counts, and when.

use api::core::SECRET;
use api::infrastructure::{TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE};
use api::os_image::OS_IMAGE;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use serde_json::{Value, json};

use super::World;

impl World {
    /// Removes the image of a machine, so that the settings of its cluster decide.
    fn without_image(&self, name: &str) {
        let mut machine = self.get(name);
        machine["spec"] = json!({});
        self.management.put(TINKERBELL_MACHINE, machine);
    }

    fn set_cluster(&self, spec: Value) {
        let cluster = json!({ "spec": spec, "status": { "ready": true } });
        self.put(TINKERBELL_CLUSTER, "demo", cluster);
    }

    /// Returns the text of the Template of a machine.
    fn template(&self, name: &str) -> String {
        let template = self.box_api.peek(TEMPLATE, name).unwrap();
        template["spec"]["data"].as_str().unwrap().to_owned()
    }

    /// Returns what an installation wrote for a machine on its Hardware.
    fn written(&self, name: &str, host: &str) -> [Option<Value>; 4] {
        [(TEMPLATE, name), (WORKFLOW, name), (HARDWARE, host)]
            .map(|(resource, name)| self.box_api.peek(resource, name))
            .into_iter()
            .chain([self.management.peek(TINKERBELL_MACHINE, name)])
            .collect::<Vec<_>>()
            .try_into()
            .unwrap()
    }
}

#[tokio::test]
async fn other_settings_of_the_cluster_apply_to_new_machines_only() {
    let world = World::paired();
    world.without_image("worker");
    world.set_cluster(json!({ "imageLookupBaseRegistry": "one.test/nodes" }));
    world.hardware("nuc1", json!({}));
    world.settle("worker").await.unwrap();
    assert!(world.template("worker").contains("one.test/nodes/ubuntu-2004:v1.34.1.gz"));
    // A second machine runs before the change.
    world.machine("running");
    world.without_image("running");
    world.hardware("nuc2", json!({}));
    world.provision("running").await;
    world.settle("worker").await.unwrap();
    let before = (world.written("worker", "nuc1"), world.written("running", "nuc2"));

    let lookup = json!({
        "imageLookupBaseRegistry": "two.test/nodes", "imageLookupOSDistro": "Debian",
        "imageLookupOSVersion": "13", "imageLookupFormat":
            "{{.BaseRegistry}}/{{.OSDistro}}{{.OSVersion}}:{{.KubernetesVersion}}",
    });
    let text = "version: '0.1'\nname: own\nglobal_timeout: 60\ntasks: []\n";
    let settings = [
        (lookup, "lookup", "two.test/nodes/debian13:v1.34.1"),
        (json!({ "templateOverride": text }), "override", text),
    ];
    for (at, (spec, name, expected)) in settings.into_iter().enumerate() {
        world.set_cluster(spec);
        for (machine, host, old) in [("worker", "nuc1", &before.0), ("running", "nuc2", &before.1)]
        {
            world.settle(machine).await.unwrap();
            assert_eq!(&world.written(machine, host), old, "{name}");
        }
        world.machine(name);
        world.without_image(name);
        world.hardware(&format!("nuc{}", 3 + at), json!({}));
        world.settle(name).await.unwrap();
        let template = world.template(name);
        assert!(template.contains(expected), "{template}");
    }
    // The machine whose installation had begun ends with the image of its beginning.
    world.provision("worker").await;
    assert_eq!(world.written("worker", "nuc1")[..1], before.0[..1]);
}

#[tokio::test]
async fn the_fields_of_a_machine_override_those_of_its_template() {
    let world = World::paired();
    let other = json!({ "url": "http://images/debian.img",
        "os": { "distro": "debian", "version": "13" } });
    let metadata = json!({ "name": "debian-13", "namespace": "default" });
    world.box_api.put(OS_IMAGE, json!({ "metadata": metadata, "spec": other }));
    // The user data are a cloud-config with the comment `# template`, and an empty shell script.
    for (name, data) in
        [("of-template", "I2Nsb3VkLWNvbmZpZwojIHRlbXBsYXRlCg=="), ("own", "IyEvYmluL3NoCg==")]
    {
        world.put(SECRET, name, json!({ "data": { "value": data } }));
    }
    let mut dell = world_host("dell", "Dell Inc.", "OptiPlex 3090");
    dell["metadata"]["namespace"] = json!("default");
    world.box_api.put(HARDWARE, dell);
    world.hardware("nuc1", json!({}));
    let of_template = json!({
        "hardwareSelector": { "manufacturer": "Intel", "plan": "NUC" },
        "osImage": "ubuntu-20.04", "userDataSecret": { "name": "of-template" },
    });
    let template = json!({ "spec": { "template": { "spec": of_template } } });
    world.put(TINKERBELL_MACHINE_TEMPLATE, "t", template);
    let cloned = json!({ "cluster.x-k8s.io/cloned-from-name": "t",
        "cluster.x-k8s.io/cloned-from-groupkind":
            "TinkerbellMachineTemplate.infrastructure.cluster.x-k8s.io" });
    let own = json!({
        "hardwareSelector": { "manufacturer": "Dell" },
        "osImage": "debian-13", "userDataSecret": { "name": "own" },
    });
    world.machine("plain");
    let machines = [
        ("worker", own, "dell", "http://images/debian.img", "#!/bin/sh"),
        ("plain", of_template, "nuc1", "http://images/ubuntu.img", "# template"),
    ];
    for (name, spec, host, image, user_data) in machines {
        let mut machine = world.get(name);
        machine["metadata"]["annotations"] = cloned.clone();
        machine["spec"] = spec;
        world.management.put(TINKERBELL_MACHINE, machine);
        world.settle(name).await.unwrap();
        let owner = &world.host(host)["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"];
        assert_eq!(owner, name);
        assert!(world.template(name).contains(image), "{name}");
        let data = world.host(host)["spec"]["userData"].to_string();
        assert!(data.contains(user_data), "{data}");
    }
}

/// Returns a Hardware of another maker.
fn world_host(name: &str, vendor: &str, product: &str) -> Value {
    let attributes = json!({ "product": { "vendor": vendor, "name": product } });
    json!({
        "metadata": { "name": name, "annotations": {
            api::tinkerbell::AGENT_ATTRIBUTES: attributes.to_string() } },
        "spec": {
            "disks": [{ "device": "/dev/sda" }],
            "interfaces": [{ "dhcp": { "mac": "52:54:00:77:00:09",
                "ip": { "address": "10.77.0.19" }, "hostname": name } }],
        },
    })
}
