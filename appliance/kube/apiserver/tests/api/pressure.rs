//! Tests that the bytes of unread responses and unfinished requests are limited, and that other
//! clients are served meanwhile.

use std::convert::Infallible;
use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use resources::WriteOptions;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::load::{HARDWARE, account, connect, empty, send};
use crate::requests::Client;
use crate::server::{PATIENCE, Server};

const MIB: usize = 1024 * 1024;
/// Number of objects in a long list, and bytes of each.
const MANY: usize = 200;
const LARGE: usize = 100 * 1024;
/// Maximum memory growth of this process, clients included.
const GROWTH_MAX: usize = 160 * MIB;

/// Resident memory of this process in bytes; each test has its own process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

async fn fill(server: &Server) {
    for number in 0..MANY {
        let text = format!("{number:03} {}", "x".repeat(LARGE));
        let labels = json!({ "even": (number % 2 == 0).to_string() });
        let object = json!({
            "metadata": { "name": format!("m{number:03}"), "labels": labels },
            "spec": { "userData": text },
        });
        let options = WriteOptions::default();
        server.engine.create("tinkerbell.org/hardware", "default", object, options).await.unwrap();
    }
}

fn names(list: &Value, of: &str) -> Vec<String> {
    let items = list[of].as_array().unwrap().iter();
    let name = |item: &Value| {
        let object = if of == "rows" { &item["object"] } else { item };
        object["metadata"]["name"].as_str().unwrap().to_owned()
    };
    items.map(name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_nobody_reads_are_not_in_memory() {
    let server = Server::start().await;
    fill(&server).await;
    let greedy = account(&server, "greedy").await;
    let before = resident();
    let connection = connect(&server).await;
    let (mut unread, mut refused) = (Vec::new(), 0);
    for _ in 0..80 {
        let answer = send(&connection, ("GET", HARDWARE, &greedy), empty()).await;
        match answer.status() {
            StatusCode::OK => unread.push(answer),
            other => {
                assert_eq!(other, StatusCode::TOO_MANY_REQUESTS);
                assert_eq!(answer.headers()["retry-after"], "1");
                refused += 1;
            }
        }
    }
    assert!(unread.len() >= 10 && refused > 0, "{} begun, {refused} refused", unread.len());
    let growth = resident().saturating_sub(before);
    assert!(growth < GROWTH_MAX, "{} MiB for {} lists", growth / MIB, unread.len());
    let (code, list) = Client::connect(&server).await.json("GET", HARDWARE, &[], "").await;
    assert_eq!((code, names(&list, "items").len()), (StatusCode::OK, MANY), "others are served");
    // A started response is complete if it is read later.
    let begun = unread.pop().unwrap();
    drop(unread);
    let whole = tokio::time::timeout(PATIENCE, begun.into_body().collect()).await;
    let whole = whole.expect("the rest of the list").unwrap().to_bytes();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(whole["items"], list["items"]);
    assert_eq!(whole["kind"], "HardwareList");
    assert!(whole["metadata"].get("continue").is_none());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_is_of_one_revision_in_every_form() {
    let server = Server::start().await;
    fill(&server).await;
    let connection = connect(&server).await;
    let begun = send(&connection, ("GET", HARDWARE, &server.token), empty()).await;
    let options = resources::DeleteOptions::default();
    server.engine.delete("tinkerbell.org/hardware", "default", "m199", options).await.unwrap();
    let whole = begun.into_body().collect().await.unwrap().to_bytes();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(names(&whole, "items").len(), MANY, "as it was when it began");

    let mut client = Client::connect(&server).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let query = format!("{HARDWARE}?includeObject=Object&limit=150");
    let (_, rows) = client.json("GET", &query, &[(ACCEPT, table)], "").await;
    assert_eq!((rows["kind"].as_str(), names(&rows, "rows").len()), (Some("Table"), 150));
    assert_eq!(rows["metadata"]["remainingItemCount"], 49);
    assert!(rows["columnDefinitions"].as_array().is_some_and(|columns| !columns.is_empty()));
    let token = rows["metadata"]["continue"].as_str().unwrap();
    let query = format!("{HARDWARE}?limit=150&continue={token}");
    let (_, rest) = client.json("GET", &query, &[], "").await;
    assert_eq!(names(&rest, "items").first().unwrap(), "m150");
    assert_eq!(rest["metadata"].get("continue"), None);
    let (_, even) =
        client.json("GET", &format!("{HARDWARE}?labelSelector=even%3Dtrue"), &[], "").await;
    assert_eq!(names(&even, "items").len(), MANY / 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_is_compressed_on_its_way() {
    let server = Server::start().await;
    fill(&server).await;
    let mut client = Client::connect(&server).await;
    let answer = client.send("GET", HARDWARE, &[(ACCEPT_ENCODING, "gzip")], "").await;
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let packed = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(packed.len() < MANY * LARGE / 20, "{} bytes", packed.len());
    let mut text = String::new();
    GzDecoder::new(packed.as_ref()).read_to_string(&mut text).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(names(&list, "items").len(), MANY);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_nobody_reads_hold_no_events() {
    const WRITES: usize = 20;
    let server = Server::start().await;
    let greedy = account(&server, "greedy").await;
    let (_, list) = Client::connect(&server).await.json("GET", HARDWARE, &[], "").await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{HARDWARE}?watch=true&resourceVersion={revision}");
    let before = resident();
    let mut unread = Vec::new();
    for _ in 0..3 {
        let connection = connect(&server).await;
        for _ in 0..100 {
            let answer = send(&connection, ("GET", &path, &greedy), empty()).await;
            assert_eq!(answer.status(), StatusCode::OK);
            unread.push((answer, connection.clone()));
        }
    }
    let mut client = Client::connect(&server).await;
    for number in 0..WRITES {
        let text = format!("{number} {}", "x".repeat(900 * 1024));
        let object =
            json!({ "metadata": { "name": format!("m{number}") }, "spec": { "userData": text } });
        let (code, _) = client.json("POST", HARDWARE, &[], object.to_string()).await;
        assert_eq!(code, 201);
    }
    let growth = resident().saturating_sub(before);
    assert!(growth < GROWTH_MAX, "{} MiB for {} watches", growth / MIB, unread.len());
    // A client that reads gets all events.
    let reading = send(&connect(&server).await, ("GET", &path, &server.token), empty()).await;
    let (mut body, mut text, mut lines) = (reading.into_body(), Vec::new(), 0);
    while lines < WRITES {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("an event");
        let data = frame.unwrap().unwrap().into_data().unwrap();
        lines += usize::from(data.ends_with(b"\n"));
        text.extend_from_slice(&data);
    }
    for (number, line) in text.split(|byte| *byte == b'\n').take(WRITES).enumerate() {
        let event: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(event["type"], "ADDED");
        assert_eq!(event["object"]["metadata"]["name"], format!("m{number}"));
    }
    drop(unread);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_not_finished_hold_no_more_than_their_share() {
    const BYTES: usize = MIB;
    let server = Server::start().await;
    let greedy = account(&server, "greedy").await;
    let connections = [connect(&server).await, connect(&server).await];
    let mut stalled = JoinSet::new();
    let many = apiserver::BODIES.each / BYTES + 4;
    for (_, connection) in (0..many).zip(connections.iter().cycle().cloned()) {
        let token = greedy.clone();
        stalled.spawn(async move {
            let begun = Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; BYTES])));
            let body = stream::iter([begun]).chain(stream::pending());
            send(&connection, ("POST", HARDWARE, &token), StreamBody::new(body).boxed_unsync())
                .await
        });
    }
    let answer = stalled.join_next().await.expect("one beyond the share").unwrap();
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.headers()["retry-after"], "1");
    let body = Full::new(Bytes::from_static(br#"{"metadata":{"name":"m"}}"#)).boxed_unsync();
    let other = connect(&server).await;
    let answer = send(&other, ("POST", HARDWARE, &server.token), body).await;
    assert_eq!(answer.status(), 201, "another client writes");
    stalled.shutdown().await;
    server.stop().await;
}
