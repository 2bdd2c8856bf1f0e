use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use api::core::{CLUSTER_ROLE_BINDING, ObjectEvent, SECRET};
use api::meta::{ObjectKey, Resource};
use axum::body::{Body, to_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request, Response};
use objects::{ObjectError, Objects as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::{EventWriter, Kubeconfig, KubeconfigError, OBJECTS_MAX, RemoteObjects};

pub const MACHINE: Resource = Resource {
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta1",
    kind: "TinkerbellMachine",
    plural: "tinkerbellmachines",
};

/// Request as the fake server receives it.
pub struct Sent {
    pub method: Method,
    pub target: String,
    pub body: Value,
}

/// Client of a fake API server, which is a function, so that time can be virtual.
pub fn remote(
    respond: impl Fn(Sent) -> Response<Body> + Send + Sync + 'static,
) -> (RemoteObjects, EventWriter) {
    let respond = Arc::new(respond);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let respond = Arc::clone(&respond);
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(Body::new(body), usize::MAX).await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let target = parts.uri.to_string();
            Ok::<_, Infallible>(respond(Sent { method: parts.method, target, body }))
        }
    });
    RemoteObjects::of(Connection::of(kube::Client::new(service, "default")))
}

pub fn reply(code: u16, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(code).body(body.into()).unwrap()
}

pub fn json_reply(code: u16, body: &Value) -> Response<Body> {
    reply(code, body.to_string())
}

pub fn status(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": "the message", "reason": reason, "code": code,
    })
}

pub fn machine(name: &str, revision: &str) -> Value {
    json!({
        "apiVersion": MACHINE.api_version(),
        "kind": MACHINE.kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "resourceVersion": revision,
            "managedFields": [{ "manager": "kubectl" }],
        },
    })
}

pub fn machines(names: &[&str], revision: &str) -> Value {
    let items: Vec<Value> = names.iter().map(|name| machine(name, revision)).collect();
    json!({
        "apiVersion": MACHINE.api_version(),
        "kind": "TinkerbellMachineList",
        "metadata": { "resourceVersion": revision },
        "items": items,
    })
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

#[tokio::test]
async fn requests_are_those_of_the_api() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    let (remote, _writer) = remote(move |request| {
        seen.lock().unwrap().push(format!("{} {}", request.method, request.target));
        json_reply(200, &machine("m1", "7"))
    });
    let read = remote.get(MACHINE, &key("m1")).await.unwrap();
    assert!(read["metadata"].get("managedFields").is_none(), "{read}");
    remote.create(MACHINE, read.clone()).await.unwrap();
    remote.update(MACHINE, read.clone()).await.unwrap();
    remote.update_status(MACHINE, read).await.unwrap();
    remote.delete(MACHINE, &key("m1")).await.unwrap();
    let machines = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/\
                    tinkerbellmachines";
    let manager = "fieldManager=tinbox";
    let expected = [
        format!("GET {machines}/m1"),
        format!("POST {machines}?&{manager}"),
        format!("PUT {machines}/m1?&{manager}"),
        format!("PUT {machines}/m1/status?&{manager}"),
        format!("DELETE {machines}/m1?"),
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_deletion_can_name_the_uid() {
    let (remote, _writer) = remote(|request| {
        let uid = &request.body["preconditions"]["uid"];
        assert_eq!((request.method, uid), (Method::DELETE, &json!("u1")));
        json_reply(409, &status(409, "Conflict"))
    });
    let error = remote.delete_uid(MACHINE, &key("m1"), "u1").await.unwrap_err();
    assert!(matches!(error, ObjectError::Conflict(_)), "{error}");
}

#[tokio::test]
async fn a_request_that_could_do_harm_is_not_sent() {
    let (remote, _writer) = remote(|seen| panic!("{} {}", seen.method, seen.target));
    let unversioned = json!({ "metadata": { "name": "m1", "namespace": "default" } });
    for result in [
        remote.update(MACHINE, unversioned.clone()).await,
        remote.update_status(MACHINE, unversioned).await,
        remote.create(MACHINE, json!({ "metadata": { "namespace": "default" } })).await,
        remote.get(SECRET, &key("../../default/secrets/other")).await,
        remote.delete(CLUSTER_ROLE_BINDING, &ObjectKey::default()).await.map(|()| Value::Null),
    ] {
        assert!(matches!(result, Err(ObjectError::Invalid(_))), "{result:?}");
    }
}

#[tokio::test]
async fn a_success_must_be_about_the_requested_object() {
    let bodies: [fn() -> String; 5] = [
        || "<html>welcome</html>".to_owned(),
        || machine("m2", "7").to_string(),
        || json!({ "kind": "Secret", "metadata": { "name": "m1" } }).to_string(),
        || status(200, "NotFound").to_string(),
        String::new,
    ];
    for body in bodies {
        let (remote, _writer) = remote(move |_| reply(200, body()));
        for result in [
            remote.get(MACHINE, &key("m1")).await.map(drop),
            remote.list(MACHINE, None).await.map(drop),
            remote.update(MACHINE, machine("m1", "7")).await.map(drop),
        ] {
            assert!(matches!(result, Err(ObjectError::Unavailable { .. })), "{result:?}");
        }
    }
    let (remote, _writer) = remote(|_| reply(200, "<html>welcome</html>"));
    let deleted = remote.delete(MACHINE, &key("m1")).await;
    assert!(matches!(deleted, Err(ObjectError::Unavailable { .. })), "{deleted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_waited_for_forever() {
    let never = || Body::from_stream(futures_util::stream::pending::<Result<String, Infallible>>());
    let (remote, _writer) = remote(move |_| reply(200, never()));
    let error = remote.get(MACHINE, &key("m1")).await.unwrap_err();
    assert!(error.to_string().contains("no answer in 30s"), "{error}");
}

#[tokio::test]
async fn a_list_is_read_in_pages_and_begins_again_when_a_page_expires() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    let (remote, _writer) = remote(move |request| {
        let mut log = seen.lock().unwrap();
        let query = request.target.split_once('?').unwrap().1.to_owned();
        let is_first = !query.contains("continue=");
        log.push(query);
        if !is_first && log.len() == 2 {
            return json_reply(410, &status(410, "Expired"));
        }
        let mut page = machines(if is_first { &["m1", "m2"] } else { &["m3"] }, "9");
        if is_first {
            page["metadata"]["continue"] = "t+1".into();
        }
        // Lists of built-in kinds have neither field in their items.
        page["items"][0].as_object_mut().unwrap().remove("kind");
        page["items"][0].as_object_mut().unwrap().remove("apiVersion");
        json_reply(200, &page)
    });
    let listed = remote.list(MACHINE, Some("default")).await.unwrap();
    let names: Vec<_> = listed.iter().map(|it| it["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m1", "m2", "m3"]);
    assert!(listed.iter().all(|it| it["kind"] == MACHINE.kind && it["apiVersion"].is_string()));
    let (first, next) = ("&limit=50", "&limit=50&continue=t%2B1");
    assert_eq!(*log.lock().unwrap(), [first, next, first, next]);
}

#[tokio::test]
async fn a_list_without_an_end_is_cut_off() {
    let (remote, _writer) = remote(|_| {
        let mut page = machines(&["m1"; 50], "9");
        page["metadata"]["continue"] = "more".into();
        json_reply(200, &page)
    });
    let error = remote.list(MACHINE, None).await.unwrap_err();
    assert!(error.to_string().ends_with(&format!("more than {OBJECTS_MAX} objects")), "{error}");
}

fn event(name: &str) -> ObjectEvent {
    ObjectEvent {
        about: MACHINE,
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: "u1".to_owned(),
        reason: "Provisioned".to_owned(),
        message: "The machine is provisioned.".to_owned(),
        warning: false,
        component: "tinbox".to_owned(),
        at: jiff::Timestamp::UNIX_EPOCH,
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_written_once_although_its_first_response_was_lost() {
    let (written, mut names) = tokio::sync::mpsc::channel(16);
    let count = Mutex::new(0);
    let (remote, writer) = remote(move |request| {
        let mut count = count.lock().unwrap();
        *count += 1;
        written.try_send(request.body["metadata"]["name"].clone()).unwrap();
        match *count {
            1 => reply(502, "bad gateway"),
            2 => json_reply(409, &status(409, "AlreadyExists")),
            _ => json_reply(201, &request.body),
        }
    });
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(writer.run(shutdown.clone()));
    remote.record(event("m1"));
    remote.record(event("m2"));
    let (first, again) = (names.recv().await.unwrap(), names.recv().await.unwrap());
    assert_eq!(first, again);
    assert!(names.recv().await.unwrap().as_str().unwrap().starts_with("m2."));
    shutdown.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn a_certificate_that_cannot_work_is_refused_before_the_first_request() {
    let own = rcgen::generate_simple_self_signed(["box".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["box".to_owned()]).unwrap();
    let empty = "-----BEGIN CERTIFICATE-----\nTWFu\n-----END CERTIFICATE-----\n";
    let connect = |authority: &str, key: &str| {
        let document = json!({
            "current-context": "c",
            "clusters": [{ "name": "m", "cluster": {
                "server": "https://10.0.0.1:6443",
                "certificate-authority-data": STANDARD.encode(authority),
            } }],
            "users": [{ "name": "u", "user": {
                "client-certificate-data": STANDARD.encode(own.cert.pem()),
                "client-key-data": STANDARD.encode(key),
            } }],
            "contexts": [{ "name": "c", "context": { "cluster": "m", "user": "u" } }],
        });
        let kubeconfig = Kubeconfig::parse(&document.to_string()).unwrap();
        RemoteObjects::new(&kubeconfig).map(drop)
    };
    let (authority, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    assert_eq!(connect(&authority, &key), Ok(()));
    let wrong = other.signing_key.serialize_pem();
    for result in
        [connect(empty, &key), connect(&authority, &wrong), connect(&authority, "hunter2")]
    {
        let error = result.unwrap_err();
        assert!(matches!(error, KubeconfigError::Invalid { .. }), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}
