//! Checks of the servers that other tests rely on.

use peers::{Cluster, ClusterConfig, Tinboxd};

/// Timeout for the deletion of a namespace.
const DELETE: &str = "--timeout=120s";

#[test]
fn a_real_cluster_starts_and_deletes_namespaces() {
    let config = ClusterConfig { controllers: true, ..ClusterConfig::default() };
    let cluster = Cluster::start(&config).unwrap();
    let kubectl = cluster.kubectl().unwrap();
    let version = kubectl.run(&["get", "--raw", "/version"], "").unwrap();
    assert!(version.out.contains(r#""gitVersion": "v1.35.3""#), "{version:?}");
    for arguments in [
        &["create", "namespace", "short"][..],
        &["create", "configmap", "inside", "--namespace=short"],
        &["delete", "namespace", "short", DELETE],
        &["auth", "can-i", "*", "*"],
    ] {
        let printed = kubectl.run(arguments, "").unwrap();
        assert!(printed.success, "{arguments:?}: {printed:?}");
    }
}

#[test]
fn the_box_starts_and_keeps_what_it_was_told() {
    let mut tinboxd = Tinboxd::start().unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    let secret = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"kept"}}"#;
    let path = "/api/v1/namespaces/default/secrets";
    let created = kubectl.run(&["create", "--raw", path, "-f", "-"], secret).unwrap();
    assert!(created.success, "{created:?}");
    tinboxd.restart().unwrap();
    let kept = kubectl.run(&["get", "secret", "kept", "-o", "name"], "").unwrap();
    assert_eq!((kept.success, kept.out.as_str()), (true, "secret/kept\n"), "{kept:?}");
}
