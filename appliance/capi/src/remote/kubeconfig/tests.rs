use serde_json::{Value, json};
use stdx::{Hint as _, with_hint};

use super::{Kubeconfig, KubeconfigError, STANDARD, TEXT_BYTES_MAX};
use base64::Engine as _;

/// Text that no error and no debug output may contain.
const SECRET: &str = "hunter2hunter2";

fn pem(label: &str) -> String {
    STANDARD.encode(format!("-----BEGIN {label}-----\nTWFu\n-----END {label}-----\n"))
}

fn cluster() -> Value {
    json!({ "server": "https://10.0.0.1:6443", "certificate-authority-data": pem("CERTIFICATE") })
}

fn document(cluster: &Value, user: &Value) -> String {
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "admin@management",
        "clusters": [
            { "name": "other", "cluster": { "server": "http://other" } },
            { "name": "management", "cluster": cluster },
        ],
        "users": [{ "name": "admin", "user": user }],
        "contexts": [
            { "name": "admin@management", "context": { "cluster": "management", "user": "admin" } },
        ],
    });
    document.to_string()
}

fn error(cluster: &Value, user: &Value) -> KubeconfigError {
    let error = Kubeconfig::parse(&document(cluster, user)).unwrap_err();
    let shown = format!("{} {error:?}", with_hint(&error));
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(error.hint().is_some(), "{error}");
    error
}

#[test]
fn embedded_data_is_accepted_and_never_printed() {
    let by_token = document(&cluster(), &json!({ "token": format!("{SECRET}\n") }));
    let by_token = Kubeconfig::parse(&by_token).unwrap();
    assert_eq!(by_token.server(), "https://10.0.0.1:6443");
    assert_eq!(by_token.token.as_ref().unwrap().expose(), SECRET);
    assert_eq!(by_token.authorities.len(), 1);
    let user = json!({
        "client-certificate-data": pem("CERTIFICATE"),
        "client-key-data": STANDARD.encode(SECRET),
    });
    let mut named = cluster();
    named["tls-server-name"] = "kubernetes.default".into();
    named["server"] = "https://rancher.example/k8s/clusters/c-1".into();
    let by_certificate = Kubeconfig::parse(&document(&named, &user)).unwrap();
    assert!(by_certificate.server_name.is_some());
    assert_eq!(by_certificate.server(), "https://rancher.example/k8s/clusters/c-1");
    for kubeconfig in [by_token, by_certificate] {
        let shown = format!("{kubeconfig:?}");
        assert!(!shown.contains(SECRET) && !shown.contains(&STANDARD.encode(SECRET)), "{shown}");
    }
}

#[test]
fn programs_files_and_other_identities_are_refused() {
    let fields = [
        ("exec", json!({ "command": "aws", "args": [SECRET] })),
        ("auth-provider", json!({ "name": "oidc", "config": { "id-token": SECRET } })),
        ("tokenFile", json!("/etc/passwd")),
        ("client-certificate", json!("/etc/passwd")),
        ("client-key", json!("/etc/passwd")),
        ("username", json!("admin")),
        ("password", json!(SECRET)),
        ("as", json!("system:admin")),
        ("as-uid", json!("1")),
        ("as-groups", json!(["system:masters"])),
        ("as-user-extra", json!({ "a": ["b"] })),
    ];
    for (name, value) in fields {
        let mut user = json!({ "token": SECRET });
        user[name] = value;
        let refused = error(&cluster(), &user);
        let KubeconfigError::Unsupported { field, .. } = refused else { panic!("{refused}") };
        assert_eq!(field, format!("users[admin].{name}"));
    }
    let fields = [
        ("insecure-skip-tls-verify", json!(true)),
        ("certificate-authority", json!("/etc/ca.crt")),
        ("proxy-url", json!("socks5://10.0.0.2")),
        ("server", json!("http://10.0.0.1:8080")),
    ];
    for (name, value) in fields {
        let mut changed = cluster();
        changed[name] = value;
        let refused = error(&changed, &json!({ "token": SECRET }));
        let KubeconfigError::Unsupported { field, .. } = refused else { panic!("{refused}") };
        assert_eq!(field, format!("clusters[management].{name}"));
    }
}

#[test]
fn missing_and_malformed_fields_are_named() {
    let token = json!({ "token": SECRET });
    let changes = [
        ("server", json!("10.0.0.1:6443")),
        ("server", json!("https://admin:hunter2hunter2@10.0.0.1")),
        ("server", json!("https://10.0.0.1/?a=b")),
        ("certificate-authority-data", json!("%")),
        ("certificate-authority-data", json!(STANDARD.encode("not PEM"))),
        ("certificate-authority-data", Value::Null),
        ("tls-server-name", json!("not a name")),
    ];
    for (name, value) in changes {
        let mut changed = cluster();
        changed[name] = value;
        let refused = error(&changed, &token);
        let KubeconfigError::Invalid { field, .. } = refused else { panic!("{refused}") };
        assert_eq!(field, format!("clusters[management].{name}"));
    }
    let users = [
        (json!({}), "users[admin]"),
        (json!({ "token": "two words" }), "users[admin].token"),
        (json!({ "client-key-data": SECRET }), "users[admin].client-certificate-data"),
        (json!({ "client-certificate-data": pem("CERTIFICATE") }), "users[admin].client-key-data"),
    ];
    for (user, expected) in users {
        let refused = error(&cluster(), &user);
        let KubeconfigError::Invalid { field, .. } = refused else { panic!("{refused}") };
        assert_eq!(field, expected);
    }
}

#[test]
fn a_text_that_is_not_a_kubeconfig_is_not_quoted() {
    // A bare token, a kubeconfig with a token in the wrong place, and broken YAML.
    let wrong = json!({ "current-context": "a", "users": SECRET }).to_string();
    let broken = format!("users: [{{ token: \"{SECRET}\n");
    for text in [SECRET, wrong.as_str(), broken.as_str(), "", "[]"] {
        let error = Kubeconfig::parse(text).unwrap_err();
        let shown = format!("{} {error:?}", with_hint(&error));
        assert!(!shown.contains(SECRET), "{shown}");
    }
    let large = " ".repeat(TEXT_BYTES_MAX + 1);
    assert_eq!(Kubeconfig::parse(&large), Err(KubeconfigError::TooLarge(large.len())));
    let nothing = "{current-context: a, contexts: null}";
    let missing = Kubeconfig::parse(nothing).unwrap_err();
    assert_eq!(missing.to_string(), "contexts: expected an entry named \"a\"");
}
