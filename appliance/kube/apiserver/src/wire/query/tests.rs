//! Tests of queries in the forms that clients send.

use std::time::Duration;

use super::Query;
use resources::Reason;
use resources::engine::{InitialEvents, RevisionMatch};

#[test]
fn queries_as_clients_write_them() {
    let query = Query::parse("&limit=500&watch=1&labelSelector=a%3Db%2C%21c&x=1+2&x=3").unwrap();
    assert_eq!(query.get("limit"), Some("500"));
    assert_eq!(query.get("x"), Some("1 2"));
    assert!(query.flag("watch") && !query.flag("allowWatchBookmarks"));
    assert!(Query::parse("watch").unwrap().flag("watch"));
    assert!(!Query::parse("watch=false").unwrap().flag("watch"));
    assert_eq!(query.list().unwrap().limit, 500);
    assert!(Query::parse("a=%ff").is_err());
    assert!(Query::parse(&"a=b&".repeat(200)).is_err());
}

#[test]
fn revisions_and_their_rules() {
    let list = |text: &str| Query::parse(text).unwrap().list();
    let revision = |text: &str| list(text).unwrap().revision;
    assert_eq!(revision(""), RevisionMatch::Newest);
    assert_eq!(revision("resourceVersion=0"), RevisionMatch::Newest);
    assert_eq!(revision("resourceVersion=7"), RevisionMatch::NotOlderThan(7));
    assert_eq!(revision("resourceVersion=7&limit=2"), RevisionMatch::Exact(7));
    assert_eq!(revision("resourceVersion=7&resourceVersionMatch=Exact"), RevisionMatch::Exact(7));
    assert_eq!(revision("continue=x&resourceVersion=x"), RevisionMatch::Newest);
    for (bad, why) in [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
            "resourceVersionMatch is forbidden when continue is provided",
        ),
        (
            "resourceVersionMatch=Newest&resourceVersion=1",
            "Unsupported value: \"Newest\": supported values: \"Exact\", \"NotOlderThan\", \
             \"\"",
        ),
        ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
    ] {
        let error = list(bad).unwrap_err();
        assert_eq!(error.reason, Reason::Invalid, "{bad}");
        assert!(error.message.starts_with("ListOptions.meta.k8s.io \"\" is invalid: "));
        assert!(error.message.ends_with(why), "{}", error.message);
    }
    assert_eq!(list("resourceVersion=x").unwrap_err().reason, Reason::BadRequest);
}

#[test]
fn where_watches_begin() {
    let watch = |text: &str| Query::parse(text).unwrap().watch();
    let began = |text: &str| watch(text).map(|watch| (watch.after, watch.initial)).unwrap();
    let streamed = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let skipped = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    for (query, expected) in [
        ("", (None, InitialEvents::Usual)),
        ("resourceVersion=0", (None, InitialEvents::Usual)),
        ("resourceVersion=9", (Some(9), InitialEvents::Usual)),
        (streamed, (None, InitialEvents::Send)),
        (skipped, (None, InitialEvents::Skip)),
    ] {
        assert_eq!(began(query), expected, "{query}");
    }
    assert_eq!(began(&format!("{streamed}&resourceVersion=0")), (None, InitialEvents::Send));
    for bad in [
        "sendInitialEvents=true",
        "sendInitialEvents=false",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "resourceVersionMatch=Exact&sendInitialEvents=true&resourceVersion=1",
    ] {
        assert_eq!(watch(bad).unwrap_err().reason, Reason::Invalid, "{bad}");
    }
}

#[test]
fn durations_are_gos() {
    let timeout = |text: &str| Query::parse(text).unwrap().timeout();
    for (text, expected) in [
        ("", None),
        ("timeout=32s", Some(32_000)),
        ("timeout=1m1.5s", Some(61_500)),
        ("timeout=300ms", Some(300)),
        ("timeout=1h0m", Some(3_600_000)),
        ("timeout=0", None),
        ("timeout=-3s", None),
        ("timeoutSeconds=7&timeout=32s", Some(7000)),
        ("timeoutSeconds=0", None),
        ("timeoutSeconds=-1", None),
    ] {
        assert_eq!(timeout(text).unwrap(), expected.map(Duration::from_millis), "{text}");
    }
    for bad in ["timeout=x", "timeout=3", "timeout=3q", "timeout=s", "timeoutSeconds=x"] {
        assert_eq!(timeout(bad).unwrap_err().reason, Reason::BadRequest, "{bad}");
    }
}

#[test]
fn writes_are_checked() {
    let write =
        |text: &str| Query::parse(text).unwrap().write(resources::Part::Main, "PatchOptions");
    assert!(write("dryRun=All").unwrap().dry_run);
    assert!(write("dryRun=All&dryRun=All&fieldManager=me").unwrap().dry_run);
    assert!(!write("dryRun=").unwrap().dry_run);
    for (bad, why) in [
        ("dryRun=Some", "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""),
        (
            "fieldManager=a%0ab",
            "Invalid value: \"a\\nb\": invalid character U+000A (at position 1)",
        ),
        (
            "fieldValidation=No",
            "fieldValidation: Unsupported value: \"No\": supported values: \"\", \"Ignore\", \
             \"Strict\", \"Warn\"",
        ),
    ] {
        let error = write(bad).unwrap_err();
        assert!(error.message.starts_with("PatchOptions.meta.k8s.io \"\" is invalid: "));
        assert!(error.message.ends_with(why), "{}", error.message);
    }
    assert!(write(&format!("fieldManager={}", "a".repeat(129))).is_err());
}
