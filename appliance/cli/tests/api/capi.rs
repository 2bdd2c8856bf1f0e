//! Tests of `capi kubeconfig`: rights and revocation of the tokens; and of `capi init --mode capt`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

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
        ("viewer", &["hardware", "delete", "nuc1", "--yes"], false),
        ("operator", &["capi", "kubeconfig", "--role", "operator"], false),
        ("operator", &["hardware", "delete", "nuc1", "--yes"], true),
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
    assert_eq!(ended.code, 6, "{ended:?}");
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

#[tokio::test(flavor = "multi_thread")]
async fn the_kubeconfig_of_the_stock_provider_is_in_a_private_file() {
    let place = Place::start().await;
    let line = ["capi", "init", "--mode", "capt", "--credential-file", "capt.yaml"];
    let line = [&line[..], &["--server", "https://192.168.7.1:6443"]].concat();
    let made = place.run(&line).await;
    let file = place.kubeconfig.with_file_name("capt.yaml");
    assert!(made.err.contains("contains a token that ends at 20"), "{made:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // The beginning of a JSON object in Base64.
    let token = text.split_whitespace().find(|word| word.starts_with("eyJ")).unwrap();
    let printed = made.good();
    assert!(!printed.contains(token), "{printed}");
    assert!(printed.contains(&format!("--from-file=kubeconfig='{}'", file.display())), "{printed}");
    assert!(printed.contains("TINKERBELL_IP=192.168.7.1 "), "{printed}");
    assert!(text.contains("https://192.168.7.1:6443"), "{text}");
    let before = text;
    for (more, why) in [
        (&[][..], "already exists: run the commands that were printed"),
        (&["--capt-version", "v0.6.8"], "v0.7.0 is the first version that can"),
        (&["--credential-file", "it's"], "expected a --credential-file without"),
        (&["--credential-file", "a,b"], "expected a --credential-file without"),
        (&["--server", "https://[fd00::1]:6443"], "--machine-host: expected an IPv4 address"),
    ] {
        // The later of two equal options is an error of clap, so the changed ones are left out.
        let mut line = line.clone();
        if let Some(at) = more.first().and_then(|option| line.iter().position(|it| it == option)) {
            line.drain(at..at + 2);
        }
        let ended = place.run(&[&line, more].concat()).await;
        assert!(ended.code > 0 && ended.err.contains(why), "{ended:?}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}
