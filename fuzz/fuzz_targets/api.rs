//! The Kubernetes-compatible API: any request of a known user. Also the parsers of selectors, paths
//! and patches without a request.

#![no_main]

use std::sync::LazyLock;

use resources::engine::Patch;
use resources::{FieldSelector, JsonPath, LabelSelector};
use axum::http::{Method, StatusCode};
use fuzz::{Api, Input, KNOWN, answer, ask, block_on, request};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const TYPES: [&[u8]; 7] = [
    b"application/json",
    b"application/merge-patch+json",
    b"application/json-patch+json",
    b"application/apply-patch+yaml",
    b"application/yaml",
    b"application/vnd.kubernetes.protobuf",
    b"application/strategic-merge-patch+json",
];

static API: LazyLock<Api> = LazyLock::new(|| {
    let nuc = json!({ "metadata": { "name": "nuc-1", "labels": { "a": "b" } }, "spec": {} });
    Api::with([("tinkerbell.org/hardware", nuc)])
});

/// Checks that a selector or a path that was parsed can be used.
fn readers(text: &str, object: &Value) {
    if let Ok(selector) = LabelSelector::parse(text) {
        selector.matches(object);
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        selector.matches(object);
    }
    if let Ok(path) = JsonPath::parse(text) {
        path.find(object);
    }
}

fn patches(patch: Value, object: &Value) {
    if let Ok(patch) = Patch::json(&patch) {
        let _ = patch.apply(object.clone());
    }
    if let Ok(patch) = Patch::merge(patch) {
        let once = patch.apply(object.clone()).expect("a merge fits");
        assert_eq!(patch.apply(once.clone()).expect("a merge fits"), once, "RFC 7386");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    let line = input.line();
    let body = input.0;
    if choice & 0x80 != 0 {
        let mut values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
        let value = |next: Option<_>| next.and_then(Result::ok).unwrap_or_default();
        let (patch, object): (Value, Value) = (value(values.next()), value(values.next()));
        readers(&String::from_utf8_lossy(line), &object);
        return patches(patch, &object);
    }
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let method = methods[usize::from(choice % 5)].clone();
    let kind_of_body = usize::from(choice / 5) % TYPES.len();
    // Kubernetes answers 500 to an applied configuration that does not have the type of its kind.
    let unfit = method == Method::PATCH && kind_of_body == 3;
    // One input must not change the objects that the next input finds.
    let is_read = method == Method::GET;
    let sign: &[u8] = if line.contains(&b'?') { b"&" } else { b"?" };
    let target = if is_read { line.to_vec() } else { [line, sign, b"dryRun=All"].concat() };
    let headers =
        [("authorization", b"Bearer t".as_slice()), ("content-type", TYPES[kind_of_body])];
    let Some(request) = request(method, &target, &headers, body, KNOWN) else { return };
    let is_watch = is_read && target.windows(5).any(|word| word == b"watch");
    let service = &API.router;
    let status = block_on(async {
        // The body of a watch ends only after its timeout, so the body is not read.
        if is_watch {
            answer(service, request).await.status()
        } else {
            ask(service, request).await.0
        }
    });
    // Kubernetes answers 504 to a request for a revision that does not exist yet.
    let is_early = status == StatusCode::GATEWAY_TIMEOUT;
    let is_unfit = unfit && status == StatusCode::INTERNAL_SERVER_ERROR;
    assert!(!status.is_server_error() || is_early || is_unfit, "{status}");
});
