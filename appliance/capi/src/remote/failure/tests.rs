use api::core::SECRET;
use api::meta::{ObjectKey, Resource};
use http::StatusCode;
use objects::ObjectError;
use serde_json::{Value, json};

use super::{
    CREDENTIAL, DEFINITION, Failure, MESSAGE_CHARS_MAX, RIGHTS, SERVER, Subject, of_response,
};

const MACHINE: Resource = Resource {
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta1",
    kind: "TinkerbellMachine",
    plural: "tinkerbellmachines",
};

fn subject() -> Subject {
    Subject::object(MACHINE, &ObjectKey::new("default", "m1"))
}

fn status(code: u16, reason: &str, details: Value) -> String {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the message", "reason": reason, "details": details, "code": code,
    });
    status.to_string()
}

fn response(code: u16, body: &str) -> Failure {
    of_response(&subject(), StatusCode::from_u16(code).unwrap(), body.as_bytes())
}

/// The hint of an error that says nothing about objects.
fn unavailable(code: u16, body: &str) -> Option<&'static str> {
    match response(code, body) {
        Failure::Object(ObjectError::Unavailable { hint, .. }) => hint,
        other => panic!("{code} {body}: {other:?}"),
    }
}

#[test]
fn only_the_api_server_can_say_that_an_object_is_gone() {
    let of = |name: &str, kind: &str, group: &str| {
        status(404, "NotFound", json!({ "name": name, "group": group, "kind": kind }))
    };
    let gone = of("m1", "tinkerbellmachines", MACHINE.group);
    let not_found = ObjectError::NotFound("TinkerbellMachine default/m1".to_owned());
    assert_eq!(response(404, &gone), Failure::Object(not_found));
    // Another object, the namespace of a new object, another kind of the same name.
    assert_eq!(unavailable(404, &of("m2", "tinkerbellmachines", MACHINE.group)), None);
    assert_eq!(unavailable(404, &of("default", "namespaces", "")), None);
    assert_eq!(unavailable(404, &of("m1", "tinkerbellmachines", "example.org")), None);
    assert_eq!(unavailable(404, &of("m1", "tinkerbellclusters", MACHINE.group)), None);
    // A list has no name, so nothing can be gone.
    let list = Subject::all(MACHINE, "default");
    let listed = of_response(&list, StatusCode::NOT_FOUND, gone.as_bytes());
    assert!(matches!(listed, Failure::Object(ObjectError::Unavailable { .. })), "{listed:?}");
}

#[test]
fn a_kind_that_is_not_served_is_not_a_missing_object() {
    let missing = "the server could not find the requested resource";
    let body = status(404, "NotFound", json!({})).replace("the message", missing);
    assert_eq!(unavailable(404, &body), Some(DEFINITION));
    assert_eq!(unavailable(404, &status(404, "NotFound", Value::Null)), Some(DEFINITION));
    assert_eq!(unavailable(404, "404 page not found\n"), Some(DEFINITION));
}

#[test]
fn the_page_of_a_proxy_says_nothing() {
    let page = "<html><head><title>404 Not Found</title></head></html>";
    for code in [301, 404, 409, 410, 422, 500, 503] {
        assert_eq!(unavailable(code, page), Some(SERVER), "{code}");
    }
    for body in ["", "{}", "null", "{\"reason\":\"NotFound\"}", "\u{0}"] {
        assert_eq!(unavailable(404, body), Some(SERVER), "{body:?}");
    }
    let success = json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }).to_string();
    assert_eq!(unavailable(404, &success), Some(SERVER));
}

#[test]
fn credentials_and_rights_say_nothing_about_objects() {
    // Even an intermediary that writes a "not found" into a 401 or 403.
    let details = json!({ "name": "m1", "group": MACHINE.group, "kind": MACHINE.plural });
    for reason in ["Unauthorized", "Forbidden", "NotFound"] {
        assert_eq!(unavailable(401, &status(401, reason, details.clone())), Some(CREDENTIAL));
        assert_eq!(unavailable(403, &status(403, reason, details.clone())), Some(RIGHTS));
    }
    assert_eq!(unavailable(401, "Unauthorized\n"), Some(CREDENTIAL));
    for (code, reason) in
        [(429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable")]
    {
        assert_eq!(unavailable(code, &status(code, reason, details.clone())), None);
    }
}

#[test]
fn conflicts_and_invalid_objects_are_told_apart() {
    let what = || "TinkerbellMachine default/m1".to_owned();
    let of = |code, reason| match response(code, &status(code, reason, json!({ "name": "m1" }))) {
        Failure::Object(error) => error,
        Failure::Expired(error) => panic!("{error}"),
    };
    assert_eq!(of(409, "Conflict"), ObjectError::Conflict(what()));
    assert_eq!(of(409, "AlreadyExists"), ObjectError::AlreadyExists(what()));
    assert_eq!(of(422, "Invalid"), ObjectError::Invalid("the message".to_owned()));
    assert_eq!(of(400, "BadRequest"), ObjectError::Invalid("the message".to_owned()));
    assert!(matches!(of(409, "Other"), ObjectError::Unavailable { .. }));
    for reason in ["Expired", "Gone"] {
        let expired = response(410, &status(410, reason, Value::Null));
        assert!(matches!(expired, Failure::Expired(_)), "{expired:?}");
    }
}

#[test]
fn a_message_is_one_line_of_limited_length() {
    let body = status(500, "InternalError", Value::Null);
    let long = body.replace("the message", &format!("first\\n  {}", "x".repeat(10_000)));
    let Failure::Object(error) = response(500, &long) else { panic!("expired") };
    let text = error.to_string();
    assert!(text.starts_with("cannot reach TinkerbellMachine default/m1: first x"), "{text}");
    assert!(text.len() < MESSAGE_CHARS_MAX + 100, "{text}");
    assert_eq!(Subject::all(SECRET, "").to_string(), "Secret objects");
    assert_eq!(Subject::all(SECRET, "a").to_string(), "Secret objects in a");
    assert_eq!(Subject::object(SECRET, &ObjectKey::new("", "x")).to_string(), "Secret x");
}
