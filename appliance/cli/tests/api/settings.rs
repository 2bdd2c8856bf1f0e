//! Fake settings API that stores one text and records the changes.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use status::settings::{RevertRequest, SettingsChange};
use std::collections::BTreeMap;

use crate::place::{Place, end};

const TEXT: &str = "name = \"cellar\"\n";

#[derive(Default)]
struct SettingsLog {
    texts: Vec<String>,
    notes: Vec<String>,
}

type Here = State<Arc<Mutex<SettingsLog>>>;

fn sum(log: &SettingsLog) -> String {
    format!("sum{}", log.texts.len())
}

fn report(log: &SettingsLog) -> Value {
    json!({
        "text": log.texts.last(), "sum": sum(log), "revision": log.texts.len(),
        "live": ["time.zone"], "restart": ["name"],
    })
}

/// Returns a settings API whose checksum is the number of texts.
pub fn router() -> Router {
    let log = SettingsLog { texts: vec![TEXT.to_owned()], notes: vec![String::new()] };
    let path = "/apis/box.tinbox.dev/v1alpha1/settings";
    Router::new()
        .route(path, get(read).put(replace).patch(change))
        .route(&format!("{path}/history"), get(history))
        .route(&format!("{path}/diff"), get(diff))
        .route(&format!("{path}/revert"), post(revert))
        .with_state(Arc::new(Mutex::new(log)))
}

async fn read(State(log): Here) -> Json<Value> {
    Json(report(&log.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn write(log: &Here, headers: &HeaderMap, text: String, note: &str) -> Response {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let status = |code: u16, message: &str| {
        let status = json!({ "kind": "Status", "reason": "Invalid", "message": message });
        (StatusCode::from_u16(code).unwrap(), Json(status)).into_response()
    };
    if headers["if-match"] != format!("\"{}\"", sum(&log)) {
        return status(412, "another client changed the settings meanwhile");
    }
    if text.contains("nam =") {
        return status(422, "the new settings have mistakes:\n  line 1: unknown field `nam`");
    }
    log.texts.push(text);
    log.notes.push(note.to_owned());
    Json(report(&log)).into_response()
}

async fn replace(
    log: Here,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    text: String,
) -> Response {
    write(&log, &headers, text, query.get("note").map_or("", String::as_str))
}

async fn change(log: Here, headers: HeaderMap, Json(change): Json<SettingsChange>) -> Response {
    let set = |(key, value): (&String, &Option<String>)| match value {
        Some(value) => format!("{key} = {value}\n"),
        None => format!("# no {key}\n"),
    };
    write(&log, &headers, change.set.iter().map(set).collect(), &change.note)
}

async fn history(State(log): Here) -> Json<Value> {
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let one = |(at, note): (usize, &String)| {
        json!({
            "number": at + 1, "actor": "admin", "note": note, "current": at + 1 == log.texts.len(),
        })
    };
    Json(log.notes.iter().enumerate().map(one).collect())
}

async fn diff(Query(query): Query<BTreeMap<String, String>>) -> Json<Value> {
    Json(json!({ "text": format!("@@ {query:?} @@\n-  a\u{1b}[31m\n") }))
}

async fn revert(log: Here, headers: HeaderMap, Json(order): Json<RevertRequest>) -> Response {
    let text = log.lock().unwrap_or_else(PoisonError::into_inner).texts
        [order.revision as usize - 1]
        .clone();
    write(&log, &headers, text, &order.note)
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_shown_set_and_brought_back() {
    let place = Place::start().await;
    let settings = |line: &[&str]| {
        let line: Vec<String> =
            ["box", "settings"].iter().chain(line).map(|it| (*it).to_owned()).collect();
        let place = &place;
        async move { place.run(&line.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    let shown = settings(&["get"]).await;
    assert_eq!(shown.err, "effective after a restart of the box: name\n");
    assert_eq!(shown.good(), TEXT);
    let set = ["set", "time.zone=Europe/Berlin", "name=", "--note", "moved"];
    let ended = settings(&set).await;
    let notes = "effective immediately: time.zone\neffective after a restart of the box: name\n";
    assert_eq!(ended.err, notes);
    assert_eq!(ended.good(), "settings saved (revision 2)\n");
    assert_eq!(settings(&["get"]).await.good(), "# no name\ntime.zone = Europe/Berlin\n");
    let log = settings(&["history"]).await.good();
    assert!(log.lines().nth(2).unwrap().ends_with("admin   yes   moved"), "{log}");
    let shown = settings(&["diff"]).await.good();
    assert_eq!(shown, "@@ {\"from\": \"1\"} @@\n-  a [31m\n");
    let shown = settings(&["diff", "1", "2"]).await.good();
    assert!(shown.contains("{\"from\": \"1\", \"to\": \"2\"}"), "{shown}");
    settings(&["revert", "1"]).await.good();
    assert_eq!(settings(&["get"]).await.good(), TEXT);
    let report = settings(&["get", "-o", "json"]).await.good();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report[0]["sum"], "sum3", "{report}");
    let wrong = settings(&["set", "zone"]).await;
    assert!(wrong.code == 2 && wrong.err.contains("expected KEY=VALUE"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_changes_all_of_it() {
    let place = Place::start().await;
    let edit = |editor: &str| {
        let mut command = place.command("tinbox", &["box", "settings", "edit", "--note", "moved"]);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("TMPDIR", place.kubeconfig.parent().unwrap()).env("EDITOR", editor);
        end(command.spawn().unwrap())
    };
    let left = || {
        let folder = std::fs::read_dir(place.kubeconfig.parent().unwrap()).unwrap();
        let names = folder.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("tinbox-")).count()
    };
    edit("sed -i s/cellar/attic/").await.good();
    assert_eq!(place.run(&["box", "settings", "get"]).await.good(), "name = \"attic\"\n");
    let same = edit("true").await;
    assert_eq!((same.err.as_str(), same.code), ("nothing was changed\n", 0));
    assert_eq!(edit("false").await.code, 1);
    assert_eq!(left(), 0, "nothing of it is left");

    let wrong = edit("sed -i s/name/nam/").await;
    assert_eq!(wrong.code, 1, "{wrong:?}");
    assert!(wrong.err.contains("line 1: unknown field `nam`"), "{wrong:?}");
    let (_, file) = wrong.err.split_once("edit --file ").unwrap();
    let file = file.split('`').next().unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "nam = \"attic\"\n");
    std::fs::write(file, "name = \"shed\"\n").unwrap();
    place.run(&["box", "settings", "edit", "--file", file]).await.good();
    assert_eq!(place.run(&["box", "settings", "get"]).await.good(), "name = \"shed\"\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_held_by_a_setting() {
    let place = Place::start().await;
    assert_eq!(place.run(&["update", "hold", "1.5.0"]).await.good(), "hold 1.5.0\n");
    let shown = place.run(&["box", "settings", "get"]).await.good();
    assert_eq!(shown, "update.hold = [\"1.5.0\"]\n");
    place.run(&["update", "hold", "1.6.0"]).await.good();
    let shown = place.run(&["box", "settings", "get"]).await.good();
    assert_eq!(shown, "update.hold = [\"1.5.0\", \"1.6.0\"]\n");
    // `upgrade hold release` is the older form, which still works.
    for unhold in [&["update", "unhold"][..], &["upgrade", "hold", "release"]] {
        assert_eq!(place.run(unhold).await.good(), "no version is held\n");
        let shown = place.run(&["box", "settings", "get"]).await.good();
        assert_eq!(shown, "# no update.hold\n");
    }
    assert_eq!(place.run(&["update", "restart"]).await.code, 3, "the box is a program on a host");
}
