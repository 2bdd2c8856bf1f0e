//! A cluster of the box's ClusterClass, from the flavor `topology` of the cluster template, with
//! stock Cluster API. The topology controller compares its objects by server-side dry runs.

use std::collections::BTreeSet;

use peers::cluster_api::Series;
use serde_json::{Value, json};

use crate::cluster_moves::world::{Side, VERSION, World};
use crate::cluster_nodes::management::{condition, good, is_available};
use crate::cluster_nodes::manifest::{CLUSTER, CONTROL_PLANE, WORKERS};
use crate::cluster_nodes::site::endpoint;
use crate::cluster_nodes::{BEFORE, delete, names};

/// Page of the manual with the policy.
const PAGE: &str = include_str!("../../../../docs/how-to/pair-a-management-cluster.md");
const POLICY: &str = "kind: ValidatingAdmissionPolicy\n";
/// Annotation of the control plane and of the workers, through the topology of the Cluster.
const TOUCHED: &str = "example.test/touched";
/// Kinds of the provider that the topology controller creates for a cluster.
const OWN: &str = "tinkerbellclusters,tinkerbellmachinetemplates";

#[test]
fn a_cluster_of_the_class_runs_and_is_not_rolled_out_without_a_change() {
    let mut world = World::start(Series::V1_13, VERSION);
    let side = world.add_side("first");
    world.add_machine("a1", CONTROL_PLANE);
    world.add_machine("a2", WORKERS);
    side.management.apply(&generate(&world, &side));
    for usage in [CONTROL_PLANE, WORKERS] {
        side.management.wait_machines(usage, 1, BEFORE);
    }
    wait_reconciled(&side);
    check_class(&side);
    let machines = names(&side.management.list("machines"));
    touch(&side, "/spec/topology/controlPlane", "kubeadmcontrolplanes");
    let before = versions(&side);
    touch(&side, "/spec/topology/workers/machineDeployments/0", "machinedeployments");
    assert_eq!(versions(&side), before);
    assert_eq!(names(&side.management.list("machines")), machines);
    assert_eq!((world.hosts.installations(), world.are_on()), (2, vec![true, true]));
    replace_template(&side);
    delete(&world.hosts, &side.management, 1);
}

/// Returns the objects of the flavor, whose machines have the installation of the test.
fn generate(world: &World, side: &Side) -> Vec<Value> {
    let (host, port) = endpoint();
    let counts = ["--control-plane-machine-count", "1", "--worker-machine-count", "1"];
    let generate = ["generate", "cluster", CLUSTER, "--kubernetes-version", BEFORE];
    let yaml =
        world.clusterctl(side, &[&generate[..], &counts, &["--flavor", "topology"]].concat());
    // The class has the usual port of an API server.
    let yaml = yaml.replace("port: 6443", &format!("port: {port}"));
    let options = serde_saphyr::options! { budget: None };
    let mut objects: Vec<Value> = serde_saphyr::from_multiple_with_options(&yaml, options).unwrap();
    for object in &mut objects {
        match (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap()) {
            ("TinkerbellMachineTemplate", name) => {
                let usage = if name == "tinbox-control-plane" { CONTROL_PLANE } else { WORKERS };
                let mut template = world.hosts.template(usage, BEFORE);
                let spec = template["spec"]["template"]["spec"].as_object_mut().unwrap();
                spec.remove("userDataSecret");
                object["spec"] = template["spec"].clone();
            }
            ("Cluster", _) => {
                let variables = object["spec"]["topology"]["variables"].as_array_mut().unwrap();
                let vip = variables.iter_mut().find(|it| it["name"] == "controlPlaneVip");
                vip.unwrap()["value"] = host.into();
            }
            _ => {}
        }
    }
    objects
}

fn wait_reconciled(side: &Side) {
    side.management.wait("the reconciled topology", || {
        let all = side.management.list("clusters");
        all.iter().all(|it| condition(it, "TopologyReconciled").0 == "True" && is_available(it))
    });
}

/// Checks that the objects of the cluster are copies of the templates of the class.
fn check_class(side: &Side) {
    let templates = side.management.list("tinkerbellclustertemplates");
    assert_eq!(templates[0]["metadata"]["ownerReferences"][0]["kind"], "ClusterClass");
    let copied = |object: &Value| {
        let from = &object["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"];
        from.as_str().map(str::to_owned)
    };
    let clusters = side.management.list("tinkerbellclusters");
    assert_eq!((clusters.len(), copied(&clusters[0]).as_deref()), (1, Some("tinbox")));
    let machines = side.management.list("tinkerbellmachinetemplates");
    let copies: BTreeSet<String> = machines.iter().filter_map(copied).collect();
    assert_eq!(copies, ["tinbox-control-plane", "tinbox-worker"].map(str::to_owned).into());
    assert_eq!(machines.len(), 4, "the templates of the class, and one copy of each");
}

/// Changes metadata in the topology, and waits until the topology controller has copied them.
fn touch(side: &Side, part: &str, resource: &str) {
    let patch = json!([{ "op": "add", "path": format!("{part}/metadata"),
        "value": { "annotations": { TOUCHED: "yes" } } }]);
    let patch = ["patch", "cluster", CLUSTER, "--type=json", "-p", &patch.to_string()];
    good(&side.management.kubectl, &patch, "");
    side.management.wait(&format!("the annotation of the {resource}"), || {
        let all = side.management.list(resource);
        all.iter().all(|it| it["metadata"]["annotations"][TOUCHED] == "yes")
    });
    wait_reconciled(side);
}

/// Applies the policy of the manual against changes in place: it refuses a change by kubectl, and
/// not the dry runs by which the topology controller replaces a template.
fn replace_template(side: &Side) {
    let policy = PAGE.split("```yaml\n").find(|it| it.contains(POLICY)).unwrap();
    let policy = policy.split("```").next().unwrap();
    let kubectl = &side.management.kubectl;
    good(kubectl, &["apply", "-f", "-"], policy);
    let change = json!({ "spec": { "template": { "spec": { "osImage": "debian-13" } } } });
    let change = ["--dry-run=server", "--type=merge", "-p", &change.to_string()];
    side.management.wait("the policy", || {
        let patch = ["patch", "tinkerbellmachinetemplate", "tinbox-worker"];
        let printed = kubectl.run(&[&patch[..], &change].concat(), "").unwrap();
        printed.err.contains("make another TinkerbellMachineTemplate")
    });
    let variables = json!({ "overrides": [{ "name": "osImage", "value": "debian-13" }] });
    let path = "/spec/topology/workers/machineDeployments/0/variables";
    let patch = json!([{ "op": "add", "path": path, "value": variables }]).to_string();
    good(kubectl, &["patch", "cluster", CLUSTER, "--type=json", "-p", &patch], "");
    side.management.wait("the new template", || {
        let templates = side.management.list("tinkerbellmachinetemplates");
        templates.iter().any(|it| it["spec"]["template"]["spec"]["osImage"] == "debian-13")
    });
}

/// Returns names and resource versions of the provider's objects of the cluster.
fn versions(side: &Side) -> Vec<String> {
    let version =
        |it: &Value| format!("{} {}", it["metadata"]["name"], it["metadata"]["resourceVersion"]);
    side.management.list(OWN).iter().map(version).collect()
}
