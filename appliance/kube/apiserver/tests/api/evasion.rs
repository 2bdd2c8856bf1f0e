//! Tests that attempts to bypass authorization fail: names that differ from the authorized name,
//! clients that disconnect before the response, bodies of another format.

use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use crate::requests::{Client, secure};
use crate::server::{PATIENCE, Server};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn post(client: &mut Client, path: &str, body: Value) -> (u16, Value) {
    let (code, answer) = client.json("POST", path, &[], body.to_string()).await;
    (code.as_u16(), answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selector_gives_no_name_to_what_is_created() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let role = json!({ "metadata": { "name": "mine" }, "rules": [
        { "verbs": ["*"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"] },
    ] });
    assert_eq!(post(&mut admin, &format!("{RBAC}/clusterroles"), role).await.0, 201);
    let account = json!({ "metadata": { "name": "one" } });
    assert_eq!(post(&mut admin, ACCOUNTS, account).await.0, 201);
    let binding = json!({
        "metadata": { "name": "one" },
        "roleRef": { "kind": "ClusterRole", "name": "mine" },
        "subjects": [{ "kind": "ServiceAccount", "name": "one", "namespace": "default" }],
    });
    assert_eq!(post(&mut admin, &format!("{RBAC}/clusterrolebindings"), binding).await.0, 201);
    let (_, answer) = post(&mut admin, &format!("{ACCOUNTS}/one/token"), json!({})).await;
    let mut one = Client::connect(&server).await;
    answer["status"]["token"].as_str().unwrap().clone_into(&mut one.token);

    let selected = format!("{secrets}?fieldSelector=metadata.name%3Dmine");
    let other = json!({ "metadata": { "name": "other" } });
    assert_eq!(post(&mut one, &selected, other).await.0, 403);
    assert_eq!(one.json("DELETE", &selected, &[], "").await.0, 403);
    assert_eq!(one.json("GET", &selected, &[], "").await.0, 200);
    assert_eq!(one.json("GET", secrets, &[], "").await.0, 403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_another_shape_are_refused_in_words() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    assert_eq!(post(&mut admin, ACCOUNTS, json!({ "metadata": { "name": "a" } })).await.0, 201);
    let namespaces = "/api/v1/namespaces";
    let named = |fields: Value| {
        let mut object = json!({ "metadata": { "name": "shape" } });
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        object
    };
    for (path, body) in [
        (namespaces, named(json!({ "status": "x" }))),
        (namespaces, named(json!({ "status": [] }))),
        (namespaces, named(json!({ "spec": "x" }))),
        (namespaces, named(json!({ "spec": { "finalizers": "x" } }))),
        (&format!("{ACCOUNTS}/a/token"), json!({ "spec": [] })),
        ("/apis/authentication.k8s.io/v1/tokenreviews", json!({ "spec": "x" })),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!({ "spec": [1] })),
    ] {
        let (code, answer) = post(&mut admin, path, body.clone()).await;
        assert_eq!(code, 400, "{path} {body}: {answer}");
    }
    let (code, _) = post(&mut admin, namespaces, named(json!({}))).await;
    assert_eq!(code, 201);
    let merge = [(CONTENT_TYPE, "application/merge-patch+json")];
    for patch in [r#"{"spec":"x"}"#, r#"{"metadata":{"labels":"x"}}"#] {
        let path = format!("{namespaces}/shape");
        let (code, answer) = admin.json("PATCH", &path, &merge, patch).await;
        assert!((400..500).contains(&code.as_u16()), "{patch}: {answer}");
    }
    // The server ignores the status that a client sends.
    let conditions = json!({ "status": { "conditions": [{ "type": "X", "status": "True" }] } });
    let generated = json!({ "metadata": { "generateName": "made-" }, "status": conditions });
    let (_, made) = post(&mut admin, namespaces, generated).await;
    assert_eq!(made["status"], json!({ "phase": "Active" }));
    assert_eq!(made["metadata"]["labels"]["kubernetes.io/metadata.name"], made["metadata"]["name"]);
    // A role without rules in the form that Go clients write.
    let role = json!({ "metadata": { "name": "none" }, "rules": null });
    let (code, answer) = post(&mut admin, &format!("{RBAC}/clusterroles"), role).await;
    assert_eq!(code, 201, "{answer}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_is_recorded_though_its_client_has_left() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let stream = TokioIo::new(secure(&server, None, &[b"h2"]).await);
    let (sender, connection) =
        http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let deadline = Instant::now() + PATIENCE;
    // The client resets its request at some point between arrival and storage.
    let mut names =
        (0_u64..).map(|at| (format!("left-{at}"), Duration::from_micros(at * 97 % 5000)));
    let name = loop {
        let (name, patience) = names.next().unwrap();
        let request = Request::post(format!("https://box{CONFIG_MAPS}"))
            .header("authorization", format!("Bearer {}", server.token))
            .header("content-type", "application/json")
            .body(Full::from(json!({ "metadata": { "name": name } }).to_string()))
            .unwrap();
        let mut sender = sender.clone();
        sender.ready().await.unwrap();
        let answered = tokio::time::timeout(patience, sender.send_request(request)).await.is_ok();
        let seen = admin.json("GET", &format!("{CONFIG_MAPS}/{name}"), &[], "").await.0;
        if !answered && seen == 200 {
            break name;
        }
        assert!(Instant::now() < deadline, "no write outlived its client");
    };
    let log = server.state().join("audit/audit.log");
    loop {
        let written = fs::read_to_string(&log).unwrap_or_default();
        let record = written.lines().find(|line| line.contains(&format!("\"{name}\"")));
        if let Some(record) = record {
            let record: Value = serde_json::from_str(record).unwrap();
            assert_eq!((&record["verb"], &record["code"]), (&json!("create"), &json!(201)));
            break;
        }
        assert!(Instant::now() < deadline, "no record of {name}");
        tokio::task::yield_now().await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_in_the_body_is_recorded_as_one() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    assert_eq!(post(&mut admin, CONFIG_MAPS, json!({ "metadata": { "name": "a" } })).await.0, 201);
    let trial = r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}"#;
    let (code, _) = admin.json("DELETE", &format!("{CONFIG_MAPS}/a"), &[], trial).await;
    assert_eq!(code, 200);
    let deadline = Instant::now() + PATIENCE;
    let log = server.state().join("audit/audit.log");
    loop {
        let written = fs::read_to_string(&log).unwrap_or_default();
        if let Some(line) = written.lines().find(|line| line.contains("\"delete\"")) {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["dryRun"], true, "{record}");
            break;
        }
        assert!(Instant::now() < deadline, "{written}");
        tokio::task::yield_now().await;
    }
    server.stop().await;
}
