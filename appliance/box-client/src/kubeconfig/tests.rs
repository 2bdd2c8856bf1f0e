use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Kubeconfig, parse};

const PEM: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";

fn text(cluster: &str, user: &str) -> String {
    format!(
        "current-context: a\nclusters:\n- name: c\n  cluster: {cluster}\n\
         users:\n- name: u\n  user: {user}\n\
         contexts:\n- name: a\n  context: {{cluster: c, user: u, namespace: lab}}\n"
    )
}

fn cluster(server: &str) -> String {
    format!("{{server: \"{server}\", certificate-authority-data: {}}}", STANDARD.encode(PEM))
}

#[test]
fn what_is_needed_is_read() {
    let text = text(&cluster("https://10.77.0.1:6443/"), "{token: hunter2}");
    let read = parse(&text, Path::new(".")).unwrap();
    assert_eq!(read.server, "https://10.77.0.1:6443");
    assert_eq!(read.token.expose(), "hunter2");
    assert_eq!(read.namespace.as_deref(), Some("lab"));
    assert_eq!(read.authorities.len(), 1);
    assert!(!format!("{read:?}").contains("hunter2"));
}

#[test]
fn what_is_missing_is_named() {
    let token = "{token: hunter2}";
    let server = cluster("https://box:6443");
    let cases = [
        (text(&cluster("http://box"), token), "not an https:// URL"),
        (text("{server: \"https://box\"}", token), "no certificate-authority-data"),
        (text("{server: \"https://box\", certificate-authority-data: \"?\"}", token), "not base64"),
        (
            text("{server: \"https://box\", certificate-authority-data: \"YQ==\"}", token),
            "has no certificate",
        ),
        (
            text("{server: \"https://box\", insecure-skip-tls-verify: true}", token),
            "is not supported",
        ),
        (text(&server, "{}"), "has no token"),
        (text(&server, "{client-key-data: YQ==}"), "client-key-data"),
        (text(&server, token).replace("current-context: a", "current-context: b"), "\"b\""),
        (format!("token: [hunter2\n{server}"), ""),
    ];
    for (text, part) in cases {
        let why = parse(&text, Path::new(".")).unwrap_err();
        assert!(why.contains(part), "{why}");
        assert!(!why.contains("hunter2"), "{why}");
    }
}

#[test]
fn files_count_from_the_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), PEM).unwrap();
    std::fs::write(folder.path().join("token"), "hunter2\n").unwrap();
    let text =
        text("{server: \"https://box\", certificate-authority: ca.pem}", "{tokenFile: token}");
    let path = folder.path().join("config");
    std::fs::write(&path, text).unwrap();
    assert_eq!(Kubeconfig::read(&path).unwrap().token.expose(), "hunter2");
}

#[test]
fn the_first_that_there_is() {
    let home = tempfile::tempdir().unwrap();
    let mine = home.path().join(".tinbox/admin.kubeconfig");
    let given = Some(PathBuf::from("given"));
    assert_eq!(Kubeconfig::find(given, Some(home.path().into())).unwrap(), PathBuf::from("given"));
    std::fs::create_dir(mine.parent().unwrap()).unwrap();
    std::fs::write(&mine, "").unwrap();
    assert_eq!(Kubeconfig::find(None, Some(home.path().into())).unwrap(), mine);
}
