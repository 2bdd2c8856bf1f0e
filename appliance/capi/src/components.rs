//! Components of the provider: CustomResourceDefinitions and RBAC, without a Deployment, webhook or
//! certificate, because the controllers run in the box.

use api::core::CLUSTER_ROLE_BINDING;
use api::infrastructure;
use serde_json::{Value, json};

use crate::provider::Provider;

/// Beginning of the names of roles. `clusterctl` deletes cluster-scoped objects only if their name
/// begins with the namespace of the provider; a replacement of CAPT has another namespace.
const ROLES: &str = "tinbox-system";
/// Name of the ClusterRole with the rights of the controllers in the box.
pub const CONTROLLERS_ROLE: &str = "tinbox-system-controllers";
/// Namespace whose UID is the unique ID of a management cluster. Kubernetes has no other ID of a
/// cluster; the API server creates this namespace, and forbids its deletion.
pub const CLUSTER_ID_NAMESPACE: &str = "kube-system";
/// Namespace of the identities and Leases of all boxes in a management cluster.
pub const PAIRING_NAMESPACE: &str = "tinbox-pairing";
/// API group of the provider's kinds.
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const DEFINITIONS: [&str; 6] = [
    infrastructure::CLUSTERS,
    infrastructure::CLUSTER_TEMPLATES,
    infrastructure::MACHINES,
    infrastructure::MACHINE_TEMPLATES,
    infrastructure::REMEDIATIONS,
    infrastructure::REMEDIATION_TEMPLATES,
];
/// API version of the kinds in a management cluster. One version needs no conversion.
const VERSION: &str = "v1beta1";
/// Group of the users by which boxes sign in: the organization of a box's client certificate.
const CONTROLLERS: &str = "tinbox:controllers";

const ALL: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// Returns all components as YAML documents.
pub fn yaml(provider: Provider) -> String {
    let documents = objects(provider);
    let text = |object: &Value| {
        serde_saphyr::to_string(object).expect("a JSON value with text keys is always YAML")
    };
    documents.iter().map(text).collect::<Vec<_>>().join("---\n")
}

fn objects(provider: Provider) -> Vec<Value> {
    let mut all = vec![json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": provider.namespace() },
    })];
    let definitions = definitions();
    let plural =
        |definition: &Value| definition["spec"]["names"]["plural"].as_str().map(str::to_owned);
    let kinds: Vec<String> = definitions.iter().filter_map(plural).collect();
    all.extend(definitions);
    let name = CONTROLLERS_ROLE;
    all.push(role(name, &[], &controller_rules(&kinds)));
    all.push(json!({
        "apiVersion": CLUSTER_ROLE_BINDING.api_version(),
        "kind": CLUSTER_ROLE_BINDING.kind,
        "metadata": { "name": name },
        "roleRef": {
            "apiGroup": CLUSTER_ROLE_BINDING.group,
            "kind": "ClusterRole",
            "name": name,
        },
        // A ServiceAccount would lose its tokens: `clusterctl upgrade` creates it again.
        "subjects": [{
            "apiGroup": CLUSTER_ROLE_BINDING.group,
            "kind": "Group",
            "name": CONTROLLERS,
        }],
    }));
    for (verbs, to) in [(&ALL[..], "edit"), (&READ[..], "view")] {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{to}");
        let rule = json!({ "apiGroups": [GROUP], "resources": kinds, "verbs": verbs });
        all.push(role(&format!("{ROLES}-{to}"), &[&label], &[rule]));
    }
    all.iter_mut().for_each(|object| label(object, provider));
    all
}

/// Adds the labels by which `clusterctl` finds its objects after `kubectl apply`.
fn label(object: &mut Value, provider: Provider) {
    let labels = &mut object["metadata"]["labels"];
    labels["clusterctl.cluster.x-k8s.io"] = "".into();
    labels["cluster.x-k8s.io/provider"] = provider.label().into();
}

/// Returns the definitions of the provider's kinds for a management cluster.
pub fn definitions() -> [Value; 6] {
    DEFINITIONS.map(definition)
}

/// Returns the definition of a kind for a management cluster: the one of the box's own API, with
/// one version and the labels of the provider contract.
fn definition(json: &str) -> Value {
    let mut crd: Value = serde_json::from_str(json).expect("a test reads every definition");
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.retain(|version| version["name"] == VERSION);
    }
    let is_request = crd["spec"]["names"]["kind"] == "TinkerbellRemediationTemplate";
    let labels = &mut crd["metadata"]["labels"];
    if is_request {
        // `clusterctl move` follows owners, and a MachineHealthCheck does not own its template.
        labels["clusterctl.cluster.x-k8s.io/move"] = "".into();
    }
    // Contracts and the versions that fulfill them; Cluster API takes the newest it knows.
    labels["cluster.x-k8s.io/v1beta1"] = VERSION.into();
    labels["cluster.x-k8s.io/v1beta2"] = VERSION.into();
    crd
}

fn role(name: &str, labels: &[&str], rules: &[Value]) -> Value {
    let labels = labels.iter().map(|label| ((*label).to_owned(), Value::from("true")));
    json!({
        "apiVersion": CLUSTER_ROLE_BINDING.api_version(),
        "kind": "ClusterRole",
        "metadata": { "name": name, "labels": labels.collect::<serde_json::Map<_, _>>() },
        "rules": rules,
    })
}

/// Returns a rule of a role.
fn on(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

/// Rights of the controllers in the box.
fn controller_rules(kinds: &[String]) -> Vec<Value> {
    let subresources = |kind: &String| ["status", "finalizers"].map(|it| format!("{kind}/{it}"));
    let written: Vec<String> = kinds.iter().flat_map(subresources).collect();
    vec![
        json!({ "apiGroups": [GROUP], "resources": kinds, "verbs": ALL }),
        json!({
            "apiGroups": [GROUP],
            "resources": written,
            "verbs": ["get", "patch", "update"],
        }),
        on(
            "cluster.x-k8s.io",
            &["clusters", "machinedeployments", "machines", "machinesets"],
            &READ,
        ),
        // The box requests the replacement of a machine that a power cycle did not repair.
        on("cluster.x-k8s.io", &["machines/status"], &["get", "patch", "update"]),
        on("apiextensions.k8s.io", &["customresourcedefinitions"], &READ),
        // Bootstrap data of a machine.
        on("", &["secrets"], &["get"]),
        json!({
            "apiGroups": [""],
            "resources": ["namespaces"],
            "resourceNames": [CLUSTER_ID_NAMESPACE],
            "verbs": ["get"],
        }),
        on("", &["events"], &["create", "patch"]),
        on("events.k8s.io", &["events"], &["create", "patch"]),
        on("coordination.k8s.io", &["leases"], &["create", "get", "patch", "update"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::{DEFINITIONS, objects};
    use crate::provider::Provider;

    #[test]
    fn there_is_nothing_that_runs_in_the_cluster() {
        let known = ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];
        for provider in Provider::ALL {
            for object in objects(provider) {
                let kind = object["kind"].as_str().unwrap();
                assert!(known.contains(&kind), "{kind}");
                assert_eq!(object["spec"]["conversion"]["webhook"], serde_json::Value::Null);
                let labels = &object["metadata"]["labels"];
                assert_eq!(labels["clusterctl.cluster.x-k8s.io"], "");
            }
        }
    }

    #[test]
    fn each_kind_has_one_version_and_the_labels_of_its_contracts() {
        let objects = objects(Provider::Tinbox);
        let crds: Vec<_> =
            objects.iter().filter(|it| it["kind"] == "CustomResourceDefinition").collect();
        assert_eq!(crds.len(), DEFINITIONS.len());
        for crd in crds {
            assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 1);
            assert_eq!(crd["spec"]["versions"][0]["storage"], true);
            for contract in ["v1beta1", "v1beta2"] {
                let label = format!("cluster.x-k8s.io/{contract}");
                assert_eq!(crd["metadata"]["labels"][label], "v1beta1");
            }
        }
    }

    #[test]
    fn clusterctl_may_delete_what_is_not_of_a_namespace() {
        let objects = objects(Provider::Tinbox);
        let is_scoped =
            |it: &&serde_json::Value| it["kind"].as_str().unwrap().starts_with("ClusterR");
        let named: Vec<_> = objects.iter().filter(is_scoped).collect();
        assert_eq!(named.len(), 4, "three roles and a binding");
        let namespace = Provider::Tinbox.namespace();
        for object in named {
            let name = object["metadata"]["name"].as_str().unwrap();
            assert!(name.starts_with(&format!("{namespace}-")), "{name}");
        }
    }
}
