//! Tests of list and watch.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use store::Options;

use super::super::{
    DeleteOptions, EventKind, InitialEvents, ListOptions, ObjectList, ObjectWatch, RevisionMatch,
    WatchOptions, WriteOptions,
};
use super::{Bench, EVENTS, HARDWARE, bench, bench_with, next, reason, revision};
use crate::StatusError;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::Reason;

fn labels(text: &str) -> LabelSelector {
    LabelSelector::parse(text).unwrap()
}

fn fields(text: &str) -> FieldSelector {
    FieldSelector::parse(text).unwrap()
}

fn names(list: &ObjectList) -> Vec<String> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list.items.iter().map(name).collect()
}

/// Returns a continue token with arbitrary content.
struct Token(&'static str);

impl Token {
    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

async fn list(bench: &Bench, options: ListOptions) -> Result<ObjectList, StatusError> {
    bench.engine.list(HARDWARE, Some("default"), options).await
}

#[tokio::test]
async fn lists_are_selected() {
    let bench = bench().await;
    bench.hardware("free", json!({})).await;
    bench.hardware("owned", json!({ "v1alpha1.tinkerbell.org/ownerName": "m" })).await;
    let rack = json!({ "metadata": { "name": "rack" } });
    bench.engine.create("/namespaces", "", rack, WriteOptions::default()).await.unwrap();
    let other = json!({ "metadata": { "name": "away" } });
    bench.engine.create(HARDWARE, "rack", other, WriteOptions::default()).await.unwrap();
    for (namespace, label, field, expected) in [
        (Some("default"), "", "", vec!["free", "owned"]),
        (None, "", "", vec!["free", "owned", "away"]),
        (Some("rack"), "", "", vec!["away"]),
        (Some("nowhere"), "", "", vec![]),
        (None, "!v1alpha1.tinkerbell.org/ownerName", "", vec!["free", "away"]),
        (None, "v1alpha1.tinkerbell.org/ownerName=m", "", vec!["owned"]),
        (None, "", "metadata.name=free", vec!["free"]),
        (None, "", "metadata.namespace!=default", vec!["away"]),
    ] {
        let options =
            ListOptions { labels: labels(label), fields: fields(field), ..ListOptions::default() };
        let list = bench.engine.list(HARDWARE, namespace, options).await.unwrap();
        assert_eq!(names(&list), expected, "{namespace:?} {label} {field}");
    }
    let options = ListOptions { fields: fields("spec.agentID=x"), ..ListOptions::default() };
    assert_eq!(reason(list(&bench, options).await), Reason::BadRequest);
}

#[tokio::test]
async fn events_are_found_by_what_they_are_about() {
    let bench = bench().await;
    for (name, about) in [("one", "nuc-1"), ("two", "nuc-2")] {
        let event = json!({
            "metadata": { "name": name }, "reason": "Booted", "type": "Normal",
            "involvedObject": { "kind": "Hardware", "name": about, "namespace": "default" },
        });
        bench.create(EVENTS, event).await.unwrap();
    }
    let options = ListOptions {
        fields: fields("involvedObject.kind=Hardware,involvedObject.name=nuc-2,type=Normal"),
        ..ListOptions::default()
    };
    let list = bench.engine.list(EVENTS, Some("default"), options).await.unwrap();
    assert_eq!(names(&list), ["two"]);
}

#[tokio::test]
async fn pages_add_up_and_miss_nothing() {
    let bench = bench().await;
    for at in 0..7 {
        bench.hardware(&format!("n{at}"), json!({ "odd": (at % 2).to_string() })).await;
    }
    let mut options = ListOptions { limit: 3, ..ListOptions::default() };
    let first = list(&bench, options.clone()).await.unwrap();
    assert_eq!(
        (names(&first), first.remaining),
        (vec!["n0".into(), "n1".into(), "n2".into()], Some(4))
    );
    // Changes between pages do not appear in the pages; a watch from the list's revision reports
    // them.
    bench.hardware("n0a", json!({})).await;
    bench.engine.delete(HARDWARE, "default", "n5", DeleteOptions::default()).await.unwrap();
    bench.merge("n4", json!({ "spec": { "agentID": "late" } })).await.unwrap();
    options.continue_token = first.continue_token;
    let second = list(&bench, options.clone()).await.unwrap();
    assert_eq!(names(&second), ["n3", "n4", "n5"]);
    assert!(second.items[1]["spec"].get("agentID").is_none());
    assert_eq!((second.revision, second.remaining), (first.revision, Some(1)));
    options.continue_token = second.continue_token;
    let third = list(&bench, options).await.unwrap();
    assert_eq!(names(&third), ["n6"]);
    assert_eq!((third.revision, third.continue_token), (first.revision, None));
    let after = WatchOptions { after: Some(first.revision), ..WatchOptions::default() };
    let mut watch = bench.engine.watch(HARDWARE, Some("default"), after).await.unwrap();
    let event = next(&mut watch).await.unwrap();
    assert_eq!((event.kind, &event.object["metadata"]["name"]), (EventKind::Added, &json!("n0a")));
    assert_eq!(next(&mut watch).await.unwrap().kind, EventKind::Deleted);
    // With a selector, the number of remaining objects is unknown; exactly full pages do not
    // promise more.
    let odd = |limit| ListOptions { limit, labels: labels("odd=0"), ..ListOptions::default() };
    let page = list(&bench, odd(2)).await.unwrap();
    assert!(page.continue_token.is_some() && page.remaining.is_none());
    let page = list(&bench, odd(4)).await.unwrap();
    assert_eq!((page.items.len(), page.continue_token), (4, None));
    let past = Token(r#"{"v":"meta.k8s.io/v1","rv":999999,"start":"default/n0\u0000"}"#).text();
    let ahead = ListOptions { continue_token: Some(past), ..ListOptions::default() };
    assert_eq!(reason(list(&bench, ahead).await), Reason::Timeout);
    let foreign = Token(r#"{"v":"meta.k8s.io/v9","rv":1,"start":"default/n0\u0000"}"#).text();
    let nowhere = Token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#).text();
    for token in ["", "x", "e30", &"a".repeat(5000), &foreign, &nowhere] {
        let token = Some(token.to_owned());
        let options = ListOptions { continue_token: token, ..ListOptions::default() };
        assert_eq!(reason(list(&bench, options).await), Reason::BadRequest);
    }
}

#[tokio::test]
async fn revisions_asked_for() {
    let bench = bench().await;
    let before = bench.hardware("b", json!({})).await;
    let object = bench.hardware("a", json!({})).await;
    let now = revision(&object);
    let exact = RevisionMatch::Exact(revision(&before));
    let then = list(&bench, ListOptions { revision: exact, ..ListOptions::default() }).await;
    let then = then.unwrap();
    assert_eq!((names(&then), then.revision), (vec!["b".to_owned()], revision(&before)));
    for (revision, expected) in [
        (RevisionMatch::NotOlderThan(0), None),
        (RevisionMatch::NotOlderThan(now), None),
        (RevisionMatch::Exact(now), None),
        (RevisionMatch::Exact(now + 1), Some(Reason::Timeout)),
        (RevisionMatch::NotOlderThan(now + 1), Some(Reason::Timeout)),
    ] {
        let answer = list(&bench, ListOptions { revision, ..ListOptions::default() }).await;
        assert_eq!(answer.err().map(|error| error.reason), expected, "{revision:?}");
    }
    let ahead = WatchOptions { after: Some(now + 1), ..WatchOptions::default() };
    let watch = bench.engine.watch(HARDWARE, None, ahead).await;
    assert_eq!(watch.err().map(|error| error.reason), Some(Reason::Timeout));
}

#[tokio::test]
async fn a_watch_resumes_after_any_revision() {
    let bench = bench().await;
    let mut told: Vec<(u64, EventKind, String)> = Vec::new();
    for at in 0..5 {
        let name = format!("n{at}");
        let object = bench.hardware(&name, json!({})).await;
        told.push((revision(&object), EventKind::Added, name.clone()));
        let object = bench.merge(&name, json!({ "spec": { "agentID": "x" } })).await.unwrap();
        told.push((revision(&object), EventKind::Modified, name));
    }
    let gone = bench.engine.delete(HARDWARE, "default", "n2", DeleteOptions::default()).await;
    let gone = gone.unwrap();
    told.push((revision(gone.object()), EventKind::Deleted, "n2".to_owned()));
    for from in 0..told.len() {
        let after = told.get(from).map(|(revision, ..)| *revision);
        let options = WatchOptions { after, ..WatchOptions::default() };
        let mut watch = bench.engine.watch(HARDWARE, None, options).await.unwrap();
        for expected in told.iter().skip(from + 1) {
            let event = next(&mut watch).await.unwrap();
            let name = event.object["metadata"]["name"].as_str().unwrap().to_owned();
            assert_eq!(&(revision(&event.object), event.kind, name), expected);
        }
    }
    // Without a revision, the watch reports existing objects first, then changes.
    let mut watch = bench.engine.watch(HARDWARE, None, WatchOptions::default()).await.unwrap();
    for name in ["n0", "n1", "n3", "n4"] {
        let event = next(&mut watch).await.unwrap();
        assert_eq!(event.kind, EventKind::Added);
        assert_eq!(event.object["metadata"]["name"], name);
    }
    assert!(watch.is_caught_up());
    assert_eq!(revision(&watch.bookmark().object), bench.engine.revision());
    bench.hardware("n9", json!({})).await;
    assert_eq!(next(&mut watch).await.unwrap().object["metadata"]["name"], "n9");
}

#[tokio::test]
async fn selectors_turn_changes_into_comings_and_goings() {
    let bench = bench().await;
    let options = WatchOptions { labels: labels("claimed"), ..WatchOptions::default() };
    let mut watch = bench.engine.watch(HARDWARE, Some("default"), options).await.unwrap();
    bench.hardware("a", json!({})).await;
    bench.hardware("b", json!({ "claimed": "" })).await;
    let claim = json!({ "metadata": { "labels": { "claimed": "yes" } } });
    bench.merge("a", claim).await.unwrap();
    bench.merge("a", json!({ "spec": { "agentID": "x" } })).await.unwrap();
    let release = json!({ "metadata": { "labels": { "claimed": null } } });
    let released = bench.merge("a", release).await.unwrap();
    bench.engine.delete(HARDWARE, "default", "a", DeleteOptions::default()).await.unwrap();
    bench.engine.delete(HARDWARE, "default", "b", DeleteOptions::default()).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let event = next(&mut watch).await.unwrap();
        if event.kind == EventKind::Deleted && event.object["metadata"]["name"] == "a" {
            // The last matching state, at the revision of the change.
            assert_eq!(revision(&event.object), revision(&released));
            assert_eq!(event.object["metadata"]["labels"]["claimed"], "yes");
        }
        seen.push((event.kind, event.object["metadata"]["name"].as_str().unwrap().to_owned()));
    }
    let expected = [
        (EventKind::Added, "b"),
        (EventKind::Added, "a"),
        (EventKind::Modified, "a"),
        (EventKind::Deleted, "a"),
        (EventKind::Deleted, "b"),
    ];
    assert_eq!(seen, expected.map(|(kind, name)| (kind, name.to_owned())));
}

#[tokio::test]
async fn what_is_no_longer_kept_is_expired() {
    let bench = bench_with(Options { log_entries: 4, ..Options::default() }).await;
    bench.hardware("a", json!({})).await;
    for at in 0..3 {
        bench.hardware(&format!("b{at}"), json!({})).await;
    }
    let paged = ListOptions { limit: 1, ..ListOptions::default() };
    let page = list(&bench, paged).await.unwrap();
    for at in 0..1000 {
        // Concurrent writes: the store commits them together.
        let merge = |name| bench.merge(name, json!({ "spec": { "agentID": at.to_string() } }));
        for merged in join_all(["a", "b0", "b1", "b2"].map(merge)).await {
            merged.unwrap();
        }
        let after = Some(page.revision);
        let options = WatchOptions { after, ..WatchOptions::default() };
        let watch = bench.engine.watch(HARDWARE, None, options).await;
        if let Err(error) = watch {
            assert_eq!(error.reason, Reason::Expired);
            break;
        }
        assert!(at < 999, "the log was never compacted");
    }
    let token = page.continue_token;
    let stale = ListOptions { continue_token: token, ..ListOptions::default() };
    let error = list(&bench, stale).await.unwrap_err();
    assert_eq!(error.reason, Reason::Expired);
    let fresh = error.to_value()["metadata"]["continue"].as_str().map(str::to_owned);
    let rest = ListOptions { continue_token: fresh, ..ListOptions::default() };
    assert_eq!(names(&list(&bench, rest).await.unwrap()), ["b0", "b1", "b2"]);
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark() {
    let bench = bench().await;
    bench.hardware("a", json!({ "x": "" })).await;
    bench.hardware("b", json!({})).await;
    let least = revision(&bench.hardware("c", json!({ "x": "" })).await);
    let options = |after, bookmarks| WatchOptions {
        initial: InitialEvents::Send,
        labels: labels("x"),
        after,
        bookmarks,
        ..WatchOptions::default()
    };
    let watch = |options| bench.engine.watch(HARDWARE, None, options);
    let mut streamed = watch(options(Some(least), true)).await.unwrap();
    for name in ["a", "c"] {
        let event = next(&mut streamed).await.unwrap();
        assert_eq!(
            (event.kind, &event.object["metadata"]["name"]),
            (EventKind::Added, &json!(name))
        );
        assert!(!streamed.is_caught_up());
    }
    let end = next(&mut streamed).await.unwrap();
    assert_eq!(end.kind, EventKind::Bookmark);
    assert_eq!(
        end.object,
        json!({
            "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
            "metadata": {
                "resourceVersion": least.to_string(),
                "annotations": { "k8s.io/initial-events-end": "true" },
            },
        })
    );
    assert!(streamed.is_caught_up());
    bench.hardware("d", json!({ "x": "" })).await;
    assert_eq!(next(&mut streamed).await.unwrap().object["metadata"]["name"], "d");
    // Without bookmarks, no bookmark marks the end; with `Skip`, no initial events are sent.
    let mut plain = watch(options(None, false)).await.unwrap();
    let skip = WatchOptions { initial: InitialEvents::Skip, ..options(None, true) };
    let mut skipped = watch(skip).await.unwrap();
    bench.hardware("e", json!({ "x": "" })).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let event = next(&mut plain).await.unwrap();
        assert_eq!(event.kind, EventKind::Added);
        seen.push(event.object["metadata"]["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ["a", "c", "d", "e"]);
    assert_eq!(next(&mut skipped).await.unwrap().object["metadata"]["name"], "e");
    let ahead = watch(options(Some(bench.engine.revision() + 1), true)).await;
    assert_eq!(ahead.err().map(|error| error.reason), Some(Reason::Timeout));
}

#[tokio::test]
async fn an_object_by_name_is_looked_up() {
    let bench = bench().await;
    for name in ["a", "b"] {
        bench.hardware(name, json!({ "l": name })).await;
    }
    for (field, label, expected) in [
        ("metadata.name=b", "", vec!["b"]),
        ("metadata.name=b,metadata.namespace=default", "l=b", vec!["b"]),
        ("metadata.name=b", "l=a", vec![]),
        ("metadata.name=b,metadata.name=a", "", vec![]),
        ("metadata.name=b,metadata.namespace=other", "", vec![]),
        ("metadata.name=none", "", vec![]),
    ] {
        let options =
            ListOptions { labels: labels(label), fields: fields(field), ..ListOptions::default() };
        let found = list(&bench, options).await.unwrap();
        assert_eq!(names(&found), expected, "{field} {label}");
        assert_eq!(found.revision, bench.engine.revision());
    }
}

#[tokio::test]
async fn a_watch_holds_a_part_of_what_was_there_and_tells_it_all() {
    let bench = bench().await;
    let text = "x".repeat(100 * 1024);
    for at in 0..10 {
        let object = json!({
            "metadata": { "name": format!("h{at}") }, "spec": { "userData": text },
        });
        bench.create(HARDWARE, object).await.unwrap();
    }
    let mut watch = bench.engine.watch(HARDWARE, None, WatchOptions::default()).await.unwrap();
    let options = DeleteOptions::default();
    bench.engine.delete(HARDWARE, "default", "h3", options).await.unwrap();
    bench.merge("h9", json!({ "spec": { "userData": "y" } })).await.unwrap();
    bench.hardware("new", json!({})).await;
    let expect = async |watch: &mut ObjectWatch, kind, name: &str, text: Option<&str>| {
        // Dropping the future loses no event.
        let event = match watch.next_raw().now_or_never() {
            Some(event) => event.unwrap().unwrap().read().unwrap(),
            None => next(watch).await.unwrap(),
        };
        assert_eq!((event.kind, &event.object["metadata"]["name"]), (kind, &json!(name)));
        assert_eq!(event.object["spec"]["userData"].as_str(), text, "{name}");
    };
    for at in 0..10 {
        assert!(watch.held() < 4 * text.len(), "{} bytes", watch.held());
        expect(&mut watch, EventKind::Added, &format!("h{at}"), Some(&text)).await;
    }
    expect(&mut watch, EventKind::Deleted, "h3", Some(&text)).await;
    expect(&mut watch, EventKind::Modified, "h9", Some("y")).await;
    expect(&mut watch, EventKind::Added, "new", None).await;
}
