//! Parts of a request other than its body: parameters, selectors, continue tokens, headers.

#![no_main]

use std::fmt::Write as _;
use std::sync::LazyLock;

use resources::{FieldSelector, LabelSelector, ListOptions};
use axum::http::{Method, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fuzz::{Api, Input, KNOWN, answer, ask, block_on, request};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const PATHS: [&str; 4] = [
    "api/v1/namespaces/default/configmaps",
    "api/v1/configmaps",
    "apis/tinkerbell.org/v1alpha1/namespaces/default/hardware",
    "api/v1/namespaces",
];

static API: LazyLock<Api> = LazyLock::new(|| {
    let objects = [
        ("a", json!({ "a": "b" })),
        ("b", json!({ "a": "c", "n": "7" })),
        ("c", json!({ "a.b/c": "", "n": "x" })),
        ("d", json!({})),
    ];
    let config_map = |(name, labels)| json!({ "metadata": { "name": name, "labels": labels } });
    Api::with(objects.map(|one| ("/configmaps", config_map(one))))
});

/// All ConfigMaps of the store.
static ALL: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let all = block_on(API.engine.list("/configmaps", Some("default"), ListOptions::default()));
    all.expect("every object").items
});

fn encoded(text: &[u8]) -> String {
    text.iter().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "%{byte:02x}");
        all
    })
}

/// Query string of the lines `NAME=VALUE`, with the values encoded here. The value of `token`
/// becomes a continue token.
fn query(mut input: Input<'_>) -> String {
    let mut query = String::new();
    while !input.is_empty() {
        let line = input.line();
        let at = line.iter().position(|byte| *byte == b'=').unwrap_or(line.len());
        let (name, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
        let pair = match name {
            b"token" => format!("continue={}", URL_SAFE_NO_PAD.encode(value)),
            name => format!("{}={}", encoded(name), encoded(value)),
        };
        query = format!("{query}&{pair}");
    }
    query
}

/// Checks that a list contains exactly the objects that its selectors match.
fn selects(labels: &str, fields: &str) {
    let (labels, fields) = (LabelSelector::parse(labels), FieldSelector::parse(fields));
    let (Ok(labels), Ok(fields)) = (labels, fields) else { return };
    let matches = |object: &&Value| labels.matches(object) && fields.matches(object);
    let expected: Vec<Value> = ALL.iter().filter(matches).cloned().collect();
    let options =
        ListOptions { labels: labels.clone(), fields: fields.clone(), ..Default::default() };
    if let Ok(list) = block_on(API.engine.list("/configmaps", Some("default"), options)) {
        assert_eq!(list.items, expected);
    }
}

/// Checks that a page after any continue token contains only stored objects.
fn continues(token: &[u8], limit: usize) {
    let continue_token = Some(URL_SAFE_NO_PAD.encode(token));
    let options = ListOptions { continue_token, limit, ..ListOptions::default() };
    if let Ok(list) = block_on(API.engine.list("/configmaps", Some("default"), options)) {
        assert!(list.items.iter().all(|one| ALL.contains(one)));
        assert!(limit == 0 || list.items.len() <= limit);
    }
}

fn asks(choice: u8, mut input: Input<'_>) {
    let (accept, agent) = (input.line(), input.line());
    let query = query(input);
    let method =
        [Method::GET, Method::GET, Method::POST, Method::DELETE][usize::from(choice % 4)].clone();
    // One input must not change the objects that the next input finds.
    let dry = if method == Method::GET { "" } else { "&dryRun=All" };
    let path = PATHS[usize::from(choice / 4) % PATHS.len()];
    let watch = if choice % 4 == 1 { "watch=1&" } else { "" };
    let target = format!("{path}?{watch}{query}{dry}");
    let headers = [
        ("authorization", b"Bearer t".as_slice()),
        ("accept", accept),
        ("user-agent", agent),
        ("accept-encoding", agent),
    ];
    let body: &[u8] = if method == Method::POST { b"{\"metadata\":{\"name\":\"e\"}}" } else { b"" };
    let Some(request) = request(method, target.as_bytes(), &headers, body, KNOWN) else { return };
    let service = &API.router;
    let (status, body) = block_on(async {
        // The body of a watch ends only after its timeout, so the body is not read.
        if query.contains("%77%61%74%63%68") || !watch.is_empty() {
            (answer(service, request).await.status(), Vec::new())
        } else {
            ask(service, request).await
        }
    });
    // Kubernetes answers 504 to a request for a revision that does not exist yet.
    let is_early = status == StatusCode::GATEWAY_TIMEOUT;
    assert!(!status.is_server_error() || is_early, "{status}");
    let is_told = body.is_empty() || serde_json::from_slice::<Value>(&body).is_ok();
    assert!(is_told, "an answer that is no JSON");
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    match choice >> 6 {
        0 | 1 => asks(choice, input),
        2 => {
            let labels = String::from_utf8_lossy(input.line());
            selects(&labels, &String::from_utf8_lossy(input.line()));
        }
        _ => continues(input.line(), usize::from(choice % 4)),
    }
});
