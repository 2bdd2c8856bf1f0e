//! Tests of `capi kubeconfig`: rights and revocation of the tokens.

use resources::DeleteOptions;
use serde_json::json;

use crate::place::{NUC1, Outcome, Place};

async fn with(place: &Place, kubeconfig: &str, line: &[&str]) -> Outcome {
    let kubeconfig = ["--kubeconfig", kubeconfig];
    place.run(&[&kubeconfig[..], line].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_does_what_its_role_says_until_its_account_goes() {
    let place = Place::start().await;
    place.file("hardware.yaml", NUC1);
    place.run(&["hardware", "push", "-f", "hardware.yaml"]).await.good();
    for role in ["capt", "viewer", "operator", "admin"] {
        let made = place.run(&["capi", "kubeconfig", "--role", role]).await;
        assert!(made.err.starts_with("the token ends at 20"), "{made:?}");
        let end = format!("kubectl delete serviceaccount tinbox-{role} -n default\n");
        assert!(made.err.ends_with(&end), "{made:?}");
        place.file(&format!("{role}.yaml"), &made.good());
    }
    for (role, line, allowed) in [
        ("capt", &["hardware", "list"][..], true),
        ("capt", &["template", "list"], false),
        ("capt", &["capi", "kubeconfig", "--role", "admin"], false),
        ("viewer", &["template", "list"], true),
        ("viewer", &["hardware", "delete", "nuc1"], false),
        ("operator", &["capi", "kubeconfig", "--role", "operator"], false),
        ("operator", &["hardware", "delete", "nuc1"], true),
        ("admin", &["capi", "kubeconfig", "--role", "admin", "--account", "other"], true),
    ] {
        let ended = with(&place, &format!("{role}.yaml"), line).await;
        assert_eq!(ended.code == 0, allowed, "{role} {line:?} {ended:?}");
        assert!(allowed || ended.err.contains("is forbidden: User"), "{ended:?}");
    }
    // Once more is one more token of the same account.
    place.run(&["capi", "kubeconfig", "--role", "capt"]).await.good();
    let gone = DeleteOptions::default();
    place.engine.delete("/serviceaccounts", "default", "tinbox-capt", gone).await.unwrap();
    let ended = with(&place, "capt.yaml", &["hardware", "list"]).await;
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains("Unauthorized"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_is_in_the_kubeconfig() {
    let place = Place::start().await;
    let rack = json!({ "metadata": { "name": "rack" } });
    place.engine.create("/namespaces", "", rack, Default::default()).await.unwrap();
    let line = [
        "capi",
        "kubeconfig",
        "--role",
        "capt",
        "--namespace",
        "rack",
        "--server",
        "https://box.example:6443/",
        "--days",
        "1",
        "-o",
        "json",
    ];
    let made: serde_json::Value = serde_json::from_str(&place.run(&line).await.good()).unwrap();
    assert_eq!(made["clusters"][0]["cluster"]["server"], "https://box.example:6443");
    assert_eq!(made["contexts"][0]["context"]["namespace"], "rack");
    let path = "rbac.authorization.k8s.io/clusterrolebindings";
    let binding = place.engine.get(path, "", "tinbox:capt:rack:tinbox-capt").await.unwrap();
    assert_eq!(binding["subjects"][0]["namespace"], "rack");
    for (line, why) in [
        (&["--role", "capt", "--server", "box"][..], "--server must be a URL"),
        (&["--role", "root"], "possible values: capt, admin, operator, viewer"),
        (&["--role", "capt", "--days", "9999"], "9999 is not in 1..=3650"),
        (&["--role", "capt", "--namespace", "none"], "namespaces \"none\" not found"),
    ] {
        let ended = place.run(&[&["capi", "kubeconfig"], line].concat()).await;
        assert!(ended.code > 0 && ended.err.contains(why), "{ended:?}");
    }
}
