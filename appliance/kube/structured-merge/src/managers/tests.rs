//! Parsing, writing and limiting of entries.

use serde_json::{Value, json};

use super::{MAX_ENTRIES, MAX_UPDATE_MANAGERS, Managers};

fn entry(manager: &str, operation: &str, time: u8, field: &str) -> Value {
    let time = format!("2020-01-01T00:00:{time:02}Z");
    let field = format!("f:{field}");
    json!({
        "manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": {field: {}},
    })
}

fn names(managers: &Managers) -> Vec<String> {
    let written = managers.write().unwrap();
    let name = |entry: &Value| entry["manager"].as_str().unwrap().to_owned();
    written.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn entries_are_written_in_order() {
    let mut status = entry("a", "Update", 1, "x");
    status["subresource"] = json!("status");
    let entries = json!([
        entry("z", "Update", 0, "x"),
        status,
        entry("a", "Update", 1, "x"),
        entry("b", "Apply", 9, "x"),
        entry("a", "Apply", 9, "x"),
    ]);
    let managers = Managers::read(&entries).unwrap();
    let entries = entries.as_array().unwrap();
    let sorted = [4, 3, 0, 2, 1].map(|at: usize| entries[at].clone());
    assert_eq!(managers.write().unwrap(), json!(sorted));
    assert_eq!(Managers::default().write(), None);
}

#[test]
fn an_applier_has_one_entry_and_a_writer_one_per_version() {
    let other_version = |mut entry: Value| {
        entry["apiVersion"] = json!("v2");
        entry
    };
    let read = |operation: &str| {
        let one = entry("a", operation, 1, "x");
        let other = other_version(entry("a", operation, 1, "y"));
        Managers::read(&json!([one, other])).unwrap()
    };
    assert_eq!(read("Apply").entries.len(), 1);
    assert_eq!(read("Update").entries.len(), 2);
}

#[test]
fn wrong_entries_are_refused() {
    let with = |field: &str, value: Value| {
        let mut entry = entry("a", "Apply", 1, "x");
        entry[field] = value;
        json!([entry])
    };
    for (entries, message) in [
        (json!({}), "managedFields must be an array of objects"),
        (json!([1]), "managedFields must be an array of objects"),
        (with("operation", json!("Other")), "operation must be `Apply` or `Update`"),
        (with("apiVersion", json!("")), "apiVersion must not be empty"),
        (with("fieldsType", json!(null)), "missing fieldsType in managed fields entry 0"),
        (with("fieldsType", json!("V2")), "invalid fieldsType \"V2\" in managed fields entry 0"),
        (with("time", json!("now")), "time in managed fields entry 0 is not an RFC 3339 time"),
        (with("manager", json!(1)), "manager in managed fields entry 0 must be a string"),
    ] {
        assert_eq!(Managers::read(&entries).unwrap_err().to_string(), message);
    }
    assert!(Managers::read(&with("fieldsV1", json!({"f:a": 1}))).is_err());
    let many = json!(vec![entry("a", "Apply", 1, "x"); MAX_ENTRIES + 1]);
    assert!(Managers::read(&many).is_err());
    assert!(Managers::read(&json!(null)).unwrap().is_empty());
}

#[test]
fn clients_reset_with_an_empty_list_or_entry() {
    for (fields, resets) in [
        (json!([]), true),
        (json!([{}]), true),
        (json!(null), false),
        (json!([{}, {}]), false),
        (json!([{"manager": "x"}]), false),
    ] {
        assert_eq!(Managers::is_reset(&fields), resets, "{fields}");
    }
}

#[test]
fn the_oldest_writers_become_one() {
    let entries: Vec<_> = (0..13_u8)
        .map(|at| entry(&format!("m{at:02}"), "Update", at, &format!("x{at}")))
        .chain([entry("applier", "Apply", 0, "y")])
        .collect();
    let mut managers = Managers::read(&json!(entries)).unwrap();
    managers.cap();
    let mut expected = vec!["applier".to_owned(), "ancient-changes".to_owned()];
    expected.extend((4..13).map(|at| format!("m{at:02}")));
    assert_eq!(names(&managers), expected);
    assert_eq!(names(&managers).len(), MAX_UPDATE_MANAGERS + 1);
    let bucket = &managers.write().unwrap()[1];
    assert_eq!(bucket["fieldsV1"], json!({"f:x0": {}, "f:x1": {}, "f:x2": {}, "f:x3": {}}));
    assert_eq!(bucket["time"], "2020-01-01T00:00:03Z");
    // With one more entry, the bucket receives the next oldest.
    let more = entry("n", "Update", 20, "z");
    let mut entries = managers.write().unwrap();
    entries.as_array_mut().unwrap().push(more);
    let mut managers = Managers::read(&entries).unwrap();
    managers.cap();
    assert_eq!(names(&managers).len(), MAX_UPDATE_MANAGERS + 1);
    assert!(names(&managers).iter().all(|name| name != "m04"));
}

#[test]
fn capping_loses_no_field() {
    let mut bucket = entry("ancient-changes", "Update", 5, "old");
    bucket["time"] = json!("2020-01-01T00:00:01Z");
    let entries: Vec<_> = (0..11_u8)
        .map(|at| entry(&format!("a{at:02}"), "Update", 1, &format!("x{at}")))
        .chain([bucket])
        .collect();
    let mut managers = Managers::read(&json!(entries)).unwrap();
    managers.cap();
    let owned: usize = managers.values().map(|entry| entry.set.len()).sum();
    assert_eq!(owned, 12);
}
