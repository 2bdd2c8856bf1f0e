//! Tests of the audit log for requests other than writes of objects.

use std::fs;
use std::time::Instant;

use http::header::{AUTHORIZATION, HeaderName};
use serde_json::{Value, json};

use crate::requests::Client;
use crate::server::{PATIENCE, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reveals_secrets_is_refused_or_has_a_path_of_its_own_leaves_a_record() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let as_jane = [(HeaderName::from_static("impersonate-user"), "jane")];
    let wrong = [(AUTHORIZATION, "Bearer wrong")];
    for (method, path, headers, code) in [
        ("GET", secrets, &[][..], 200),
        ("GET", "/api/v1/namespaces/default/configmaps", &as_jane, 403),
        ("POST", "/backup", &[], 404),
        ("DELETE", "/backup/kept/a", &[], 404),
        ("GET", "/api/v1/namespaces/default/configmaps", &wrong, 401),
        // These requests leave no record.
        ("GET", "/api/v1/namespaces/default/configmaps", &[], 200),
        ("GET", "/api", &[], 200),
    ] {
        let (found, answer) = admin.json(method, path, headers, "").await;
        assert_eq!(found.as_u16(), code, "{method} {path}: {answer}");
    }
    let path = server.state().join("audit/audit.log");
    let deadline = Instant::now() + PATIENCE;
    let log = loop {
        let log = fs::read_to_string(&path).unwrap_or_default();
        if log.lines().count() >= 5 {
            break log;
        }
        assert!(Instant::now() < deadline, "{log}");
        tokio::task::yield_now().await;
    };
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = records
        .iter()
        .map(|it| json!([it["verb"], it["resource"], it["path"], it["user"], it["code"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["list", "secrets", null, "admin", 200]),
            json!(["list", "configmaps", null, "admin", 403]),
            json!(["post", "", "/backup", "admin", 404]),
            json!(["delete", "", "/backup/kept/a", "admin", 404]),
            json!(["list", "configmaps", null, "system:anonymous", 401]),
        ],
        "{log}"
    );
    server.stop().await;
}
