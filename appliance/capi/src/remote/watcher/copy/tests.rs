use api::meta::ObjectKey;
use serde_json::{Value, json};

use super::{Copy, Full, OBJECTS_MAX};

fn object(name: &str) -> Value {
    at(name, "1")
}

fn at(name: &str, revision: &str) -> Value {
    let metadata = json!({ "namespace": "default", "name": name, "resourceVersion": revision });
    json!({ "metadata": metadata })
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn list(copy: &Copy, objects: Vec<Value>) -> std::collections::BTreeSet<ObjectKey> {
    copy.replace(copy.begin_list(), "1", objects)
}

/// Returns the resource version of the object `a`.
fn revision(copy: &Copy) -> Option<String> {
    let object = copy.get(&key("a"))?;
    object["metadata"]["resourceVersion"].as_str().map(str::to_owned)
}

#[test]
fn a_list_yields_the_keys_of_vanished_objects_too() {
    let copy = Copy::default();
    list(&copy, vec![object("a"), object("b")]);
    let keys = list(&copy, vec![object("b"), object("c")]);
    assert_eq!(keys, ["a", "b", "c"].map(key).into());
    assert_eq!(copy.get(&key("a")), None);
    assert_eq!(copy.all().len(), 2);
}

#[test]
fn a_full_copy_accepts_changes_only() {
    let copy = Copy::default();
    let names: Vec<String> = (0..OBJECTS_MAX).map(|index| format!("m{index}")).collect();
    list(&copy, names.iter().map(|name| object(name)).collect());
    let put = |name: &str| copy.put(key(name), object(name));
    assert_eq!(put("m0"), Ok(()));
    assert_eq!(put("another"), Err(Full));
    copy.remove(&key("m1"), &object("m1"));
    assert_eq!(put("another"), Ok(()));
}

#[test]
fn a_response_is_newer_until_its_event_comes() {
    let copy = Copy::default();
    list(&copy, vec![at("a", "9")]);
    // Compared as numbers, not as text.
    copy.answered(&at("a", "10"));
    assert_eq!(revision(&copy).as_deref(), Some("10"));
    // An event of a write before that of the box, then one after.
    copy.put(key("a"), at("a", "9")).unwrap();
    assert_eq!((revision(&copy).as_deref(), copy.all().len()), (Some("10"), 1));
    copy.put(key("a"), at("a", "12")).unwrap();
    assert_eq!(revision(&copy).as_deref(), Some("12"));
    // A response that was overtaken by events.
    copy.answered(&at("a", "11"));
    assert_eq!(revision(&copy).as_deref(), Some("12"));
    copy.answered(&at("a", "13"));
    copy.remove(&key("a"), &at("a", "14"));
    assert_eq!(revision(&copy), None);
    // Perhaps an object of another namespace: no event would ever replace it.
    copy.answered(&at("a", "15"));
    assert_eq!(revision(&copy), None);
}

#[test]
fn a_list_replaces_responses_before_its_start() {
    let copy = Copy::default();
    list(&copy, vec![at("a", "1")]);
    copy.answered(&at("a", "90"));
    // Restored from a backup: the server counts on from an older number.
    let begun = copy.begin_list();
    copy.replace(begun, "40", vec![at("a", "30")]);
    assert_eq!(revision(&copy).as_deref(), Some("30"));
    let begun = copy.begin_list();
    copy.answered(&at("a", "41"));
    copy.replace(begun, "40", vec![at("a", "30")]);
    assert_eq!(revision(&copy).as_deref(), Some("41"));
    let begun = copy.begin_list();
    copy.answered(&at("a", "42"));
    copy.replace(begun, "43", Vec::new());
    assert_eq!(revision(&copy), None);
}

#[test]
fn a_server_without_numbers_is_not_ordered_until_a_later_list() {
    let copy = Copy::default();
    list(&copy, vec![at("a", "x")]);
    let begun = copy.begin_list();
    copy.answered(&at("a", "y"));
    assert!(!copy.is_ordered());
    copy.replace(begun, "z", vec![at("a", "x")]);
    assert!(!copy.is_ordered());
    list(&copy, vec![at("a", "y")]);
    assert!(copy.is_ordered());
}
