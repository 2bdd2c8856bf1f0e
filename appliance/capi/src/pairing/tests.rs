use api::core::CLUSTER_ROLE_BINDING;
use api::management_cluster::ManagementCluster;
use api::meta::{ObjectKey, Resource};
use serde_json::{Value, json};
use stdx::Secret;

use super::identity::is_own;
use super::{Identity, PAIRING_NAMESPACE, box_name, box_objects, changed, identity_of};
use crate::management::tests_token as token;
use crate::remote::Kubeconfig;

fn admin() -> Kubeconfig {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
    let authority = base64::engine::general_purpose::STANDARD.encode(certificate.pem());
    let document = json!({
        "current-context": "c",
        "clusters": [{ "name": "m", "cluster": {
            "server": "https://fleet.example:6443", "certificate-authority-data": authority,
        } }],
        "users": [{ "name": "u", "user": { "token": "admin" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "m", "user": "u" } }],
    });
    Kubeconfig::parse(&document.to_string()).unwrap()
}

#[test]
fn the_identity_has_the_rights_of_the_provider_and_its_own_token() {
    let objects = Identity::new("box-1", "fleet", None).objects();
    let lines = |objects: &[(Resource, Value)]| -> String {
        let text = |object: &Value| serde_json::to_string(object).unwrap();
        objects.iter().map(|(_, object)| text(object) + "\n").collect()
    };
    let all = lines(&objects);
    assert!(!all.contains("clusterctl"), "clusterctl would delete them");
    // A group would give its rights to each account of the namespace.
    assert!(!all.contains("\"Group\""), "{all}");
    golden::check("identity.jsonl", &all);
    let scoped = Identity::new("box-1", "fleet", Some("rack-1")).objects();
    golden::check("identity-of-a-namespace.jsonl", &lines(&scoped));
    let (kind, binding) = scoped.last().unwrap();
    assert_eq!((kind.kind, &binding["metadata"]["namespace"]), ("RoleBinding", &json!("rack-1")));
    assert!(scoped.iter().all(|(kind, _)| *kind != CLUSTER_ROLE_BINDING));
}

#[test]
fn each_created_object_is_removed_except_the_namespace() {
    for namespace in [None, Some("rack-1")] {
        let identity = Identity::new("box-1", "fleet", namespace);
        let mut created: Vec<_> = identity
            .objects()
            .iter()
            .map(|(kind, object)| (kind.kind, object["metadata"]["name"].as_str().unwrap().into()))
            .collect();
        let mut removed: Vec<(&str, String)> =
            identity.removed().into_iter().map(|(kind, key)| (kind.kind, key.name)).collect();
        removed.push(("Namespace", PAIRING_NAMESPACE.to_owned()));
        created.sort();
        removed.sort();
        assert_eq!(created, removed);
        let command = identity.removal_command(&ObjectKey::new("tinbox-pairing", "tinbox-b1"));
        for (kind, name) in removed.iter().filter(|(kind, _)| *kind != "Namespace") {
            assert!(command.contains(&format!("{}/{name}", kind.to_lowercase())), "{command}");
        }
    }
}

#[test]
fn a_box_name_is_a_part_of_an_object_name() {
    for (url, start) in [
        ("https://10.0.0.5:6443", "10-0-0-5-"),
        ("https://Box.Example", "box-example-"),
        ("https://[fd00::1]:6443", "fd00-1-"),
        ("https://box_1..lan:6443/", "box-1-lan-"),
    ] {
        let name = box_name(url, b"authority");
        assert!(name.starts_with(start) && name.len() == start.len() + 8, "{url}: {name}");
        assert_ne!(name, box_name(url, b"another"));
    }
    let long = box_name(&format!("https://{}:6443", "a".repeat(300)), b"");
    assert!(long.len() < 80, "{long}");
}

#[test]
fn the_kubeconfig_of_the_box_names_the_identity() {
    let identity = Identity::new("a", "", None);
    let kubeconfig = admin().of_token(None, &token(1_000, 9_000));
    let parsed = Kubeconfig::parse(kubeconfig.expose()).unwrap();
    assert_eq!(parsed.server(), "https://fleet.example:6443");
    let key = ObjectKey::new("default", "fleet");
    let [(_, secret), (_, cluster)] = box_objects(&key, &kubeconfig, Some("rack-1"), Some("a"));
    let cluster: ManagementCluster = serde_json::from_value(cluster).unwrap();
    assert_eq!(cluster.spec.kubeconfig_secret_ref.name, secret["metadata"]["name"]);
    assert_eq!(cluster.spec.namespace.as_deref(), Some("rack-1"));
    assert_eq!(cluster.spec.watch_filter.as_deref(), Some("a"));
    let found = identity_of(&secret, None).unwrap();
    assert_eq!(found.account(), ObjectKey::new(PAIRING_NAMESPACE, "tinbox-a"));
    assert_ne!(found, identity);
    let mut stored = secret.clone();
    stored["metadata"]["labels"] = json!({ "a": "b" });
    let [(_, new), _] = box_objects(&key, &admin().of_token(None, &token(1, 2)), None, None);
    let merged = changed(stored, &new);
    assert_eq!((&merged["data"], &merged["metadata"]["labels"]["a"]), (&new["data"], &json!("b")));
    // A credential of another origin has no identity to remove.
    let pasted = admin().of_token(None, &Secret::from("opaque"));
    assert_eq!(identity_of(&box_objects(&key, &pasted, None, None)[0].1, None), None);
    assert_eq!(identity_of(&json!({}), None), None);
}

#[test]
fn another_url_keeps_the_name_in_the_certificate() {
    let text = admin().of_token(Some("https://10.9.9.9:6443"), &Secret::from("t"));
    let document: Value = serde_json::from_str(text.expose()).unwrap();
    let cluster = &document["clusters"][0]["cluster"];
    assert_eq!(cluster["server"], "https://10.9.9.9:6443");
    assert_eq!(cluster["tls-server-name"], "fleet.example");
    assert!(Kubeconfig::parse(text.expose()).is_ok());
}

#[test]
fn rights_of_others_in_the_namespace_are_found() {
    let objects = Identity::new("box-1", "fleet", None).objects();
    let [_, _, (_, role), (_, binding), _] = &objects[..] else { panic!("{objects:?}") };
    assert!(is_own(binding, Some(role)));
    // A binding without its role gives no rights.
    assert!(is_own(binding, None));
    let mut wide = role.clone();
    wide["rules"][0].as_object_mut().unwrap().remove("resourceNames");
    assert!(!is_own(binding, Some(&wide)));
    for (field, value) in [
        ("roleRef", json!({ "kind": "ClusterRole", "name": "admin" })),
        ("subjects", json!([{ "kind": "User", "name": "jane" }])),
        ("subjects", json!([binding["subjects"][0], { "kind": "User", "name": "jane" }])),
        ("metadata", json!({ "name": "another" })),
    ] {
        let mut foreign = binding.clone();
        foreign[field] = value;
        assert!(!is_own(&foreign, Some(role)), "{foreign}");
    }
}
