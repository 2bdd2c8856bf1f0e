//! Tests of lists, watches and deletes in every form that a client may request.

use std::io::Read as _;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::requests::{Client, HARDWARE, event};
use crate::server::Server;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn header(response: &Response<Incoming>, name: HeaderName) -> String {
    let value = response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    value.unwrap_or_default()
}

fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streaming_list_is_told_where_it_ends() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let mut watching = Client::connect(&server).await;
    client.create("a").await;
    client.create("b").await;
    // The request that client-go's reflector sends.
    let path = format!(
        "{HARDWARE}?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan\
         &sendInitialEvents=true&timeoutSeconds=300&watch=true"
    );
    let mut body = watching.send("GET", &path, &[], "").await.into_body();
    for name in ["a", "b"] {
        let added = event(&mut body).await.unwrap();
        assert_eq!(
            (&added["type"], &added["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(name))
        );
    }
    let end = event(&mut body).await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(end["object"]["kind"], "Hardware");
    let created = client.create("c").await;
    assert_eq!(event(&mut body).await.unwrap(), json!({ "type": "ADDED", "object": created }));
    // The forms of an event: metadata alone, and rows.
    for accept in ["PartialObjectMetadata", "PartialObjectMetadataList"] {
        let mut watching = Client::connect(&server).await;
        let accept = format!("application/json;as={accept};g=meta.k8s.io;v=v1");
        let mut body = watching.send("GET", &path, &[(ACCEPT, &accept)], "").await.into_body();
        let added = event(&mut body).await.unwrap();
        assert_eq!(added["object"]["kind"], "PartialObjectMetadata");
        assert!(added["object"].get("spec").is_none());
    }
    let mut watching = Client::connect(&server).await;
    let table = [(ACCEPT, "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let mut body = watching.send("GET", &path, &table, "").await.into_body();
    let first = event(&mut body).await.unwrap();
    assert!(!first["object"]["columnDefinitions"].as_array().unwrap().is_empty());
    let second = event(&mut body).await.unwrap();
    assert_eq!(second["object"]["rows"][0]["object"]["metadata"]["name"], "b");
    // The path of one object only supports reads, whatever the query contains.
    let (_, object) = client.json("GET", &format!("{HARDWARE}/b?watch=true"), &[], "").await;
    assert_eq!(object["metadata"]["name"], "b");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_carry_an_id_and_shrink_when_asked() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    for at in 0..3 {
        let noise = "nothing in particular ".repeat(3000);
        let object = json!({
            "metadata": { "name": format!("n{at}"), "annotations": { "x/noise": noise } },
        });
        let (code, _) = client.json("POST", HARDWARE, &[], object.to_string()).await;
        assert_eq!(code, 201);
    }
    let plain = client.send("GET", HARDWARE, &[], "").await;
    assert_eq!(header(&plain, HeaderName::from_static("audit-id")).len(), 36);
    assert_eq!(header(&plain, CONTENT_ENCODING), "");
    let plain = plain.into_body().collect().await.unwrap().to_bytes();
    let asks = [(ACCEPT_ENCODING, "br, gzip;q=0.8"), (HeaderName::from_static("audit-id"), "mine")];
    let packed = client.send("GET", HARDWARE, &asks, "").await;
    assert_eq!(header(&packed, CONTENT_ENCODING), "gzip");
    assert_eq!(header(&packed, HeaderName::from_static("audit-id")), "mine");
    let packed = packed.into_body().collect().await.unwrap().to_bytes();
    assert!(packed.len() < plain.len() / 10, "{} of {}", packed.len(), plain.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
    // Small responses are not compressed, `gzip;q=0` is respected, and HEAD has no body.
    let small = client.send("GET", &format!("{HARDWARE}/none"), &asks, "").await;
    assert_eq!((header(&small, CONTENT_ENCODING).as_str(), small.status().as_u16()), ("", 404));
    small.into_body().collect().await.unwrap();
    let no = client.send("GET", HARDWARE, &[(ACCEPT_ENCODING, "gzip;q=0")], "").await;
    assert_eq!(header(&no, CONTENT_ENCODING), "");
    no.into_body().collect().await.unwrap();
    let head = client.send("HEAD", HARDWARE, &[], "").await;
    assert_eq!(
        (head.status().as_u16(), header(&head, CONTENT_LENGTH)),
        (200, plain.len().to_string())
    );
    let (code, status) = client.json("OPTIONS", HARDWARE, &[], "").await;
    assert_eq!((code.as_u16(), &status["reason"]), (405, &json!("MethodNotAllowed")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_shaped_so_is_not_acceptable() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    client.create("a").await;
    let one = format!("{HARDWARE}/a");
    for (path, kind, code) in [
        (HARDWARE, "PartialObjectMetadata", 406),
        (HARDWARE, "PartialObjectMetadataList", 200),
        (&one, "PartialObjectMetadataList", 406),
        (&one, "PartialObjectMetadata", 200),
        (&one, "Table", 200),
    ] {
        let accept = format!("application/json;as={kind};g=meta.k8s.io;v=v1");
        let (given, answer) = client.json("GET", path, &[(ACCEPT, &accept)], "").await;
        assert_eq!(given.as_u16(), code, "{path} {kind}: {answer}");
        // A further acceptable clause makes the request valid: the first usable clause counts.
        let both = format!("application/vnd.kubernetes.protobuf,{accept}");
        let (given, _) = client.json("GET", path, &[(ACCEPT, &both)], "").await;
        assert_eq!(given.as_u16(), code);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delete_options_that_make_no_sense_are_refused() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let a = client.create("a").await;
    let one = format!("{HARDWARE}/a");
    let uid = a["metadata"]["uid"].as_str().unwrap();
    let invalid = "DeleteOptions.meta.k8s.io \"\" is invalid: ";
    let policies = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
    let kind = "no kind \"Hardware\" is registered for version \"tinkerbell.org/v1alpha1\": a \
                deletion takes DeleteOptions";
    for (query, body, code, why) in [
        // The object itself is not accepted as a precondition.
        ("", r#"{"kind":"Hardware","apiVersion":"tinkerbell.org/v1alpha1"}"#, 400, kind.to_owned()),
        (
            "?dryRun=Some",
            "",
            422,
            format!("{invalid}dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""),
        ),
        (
            "",
            r#"{"dryRun":["No"]}"#,
            422,
            format!("{invalid}dryRun: Unsupported value: [\"No\"]: supported values: \"All\""),
        ),
        (
            "?propagationPolicy=Foo",
            "",
            422,
            format!(
                "{invalid}propagationPolicy: Unsupported value: \"Foo\": supported values: \
                 {policies}"
            ),
        ),
        (
            "",
            r#"{"orphanDependents":true,"propagationPolicy":"Orphan"}"#,
            422,
            format!(
                "{invalid}propagationPolicy: Invalid value: \"Orphan\": \
                 orphanDependents and deletionPropagation cannot be both set"
            ),
        ),
        (
            "",
            r#"{"preconditions":{"uid":"1"}}"#,
            409,
            format!(
                "Operation cannot be fulfilled on Hardware.tinkerbell.org \"a\": the UID in the \
                 precondition (1) does not match the UID in record ({uid}). The object might \
                 have been deleted and then recreated"
            ),
        ),
    ] {
        let (given, status) = client.json("DELETE", &format!("{one}{query}"), &[], body).await;
        assert_eq!((given.as_u16(), message(&status)), (code, why.as_str()));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletes_say_how_in_the_body_or_in_the_query() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    for name in ["a", "b", "c", "d"] {
        client.create(name).await;
    }
    let one = format!("{HARDWARE}/a");
    for (query, body) in
        [("?dryRun=All", ""), ("", r#"{"dryRun":["All"],"gracePeriodSeconds":-5}"#)]
    {
        let (code, status) = client.json("DELETE", &format!("{one}{query}"), &[], body).await;
        assert_eq!((code.as_u16(), &status["status"]), (200, &json!("Success")));
        let (code, _) = client.json("GET", &one, &[], "").await;
        assert_eq!(code, 200);
        let (code, list) = client.json("DELETE", &format!("{HARDWARE}{query}"), &[], body).await;
        assert_eq!((code.as_u16(), list["items"].as_array().unwrap().len()), (200, 4));
    }
    let (_, held) =
        client.json("DELETE", &format!("{one}?propagationPolicy=Orphan"), &[], "").await;
    assert_eq!(held["metadata"]["finalizers"], json!(["orphan"]));
    let body = r#"{"propagationPolicy":"Background"}"#;
    let (_, gone) = client.json("DELETE", &format!("{HARDWARE}/b"), &[], body).await;
    assert_eq!(gone["status"], "Success");
    let path = format!("{HARDWARE}?fieldSelector=metadata.name%3Dc");
    let (_, list) = client.json("DELETE", &path, &[], body).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let (_, left) = client.json("GET", HARDWARE, &[], "").await;
    let names = left["items"].as_array().unwrap().iter().map(|one| &one["metadata"]["name"]);
    // The first object is deleted when the collector processes it, which may be now.
    assert_eq!(names.filter(|name| **name != "a").collect::<Vec<_>>(), ["d"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubernetes_own_kinds_take_strategic_patches() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "s", "finalizers": ["a.b/c", "c.d/e"] }, "data": { "x": "MQ==" },
    });
    let (code, _) = client.json("POST", SECRETS, &[], secret.to_string()).await;
    assert_eq!(code, 201);
    let strategic = [(CONTENT_TYPE, "application/strategic-merge-patch+json")];
    let path = format!("{SECRETS}/s");
    let patch = json!({
        "metadata": { "$deleteFromPrimitiveList/finalizers": ["a.b/c"] },
        "data": { "$patch": "replace", "y": "Mg==" },
    });
    let (code, patched) = client.json("PATCH", &path, &strategic, patch.to_string()).await;
    assert_eq!(code, 200, "{patched}");
    assert_eq!(patched["metadata"]["finalizers"], json!(["c.d/e"]));
    assert_eq!(patched["data"], json!({ "y": "Mg==" }));
    let (code, status) = client.json("PATCH", &path, &strategic, "[]").await;
    assert_eq!(code, 400, "{status}");
    client.create("a").await;
    let (code, status) = client.json("PATCH", &format!("{HARDWARE}/a"), &strategic, "{}").await;
    assert_eq!(code, 415);
    assert!(message(&status).ends_with(
        "accepted media types include: application/json-patch+json, application/merge-patch+json, \
         application/apply-patch+yaml"
    ));
    server.stop().await;
}
