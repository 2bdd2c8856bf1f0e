//! The two Event kinds, which share the stored objects. Core `v1` and `events.k8s.io/v1` differ in
//! field names (Kubernetes `pkg/apis/events/v1`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{MAX_EVENTS, columns, fields, native, rules};
use crate::definition::{Column, Conversion, ResourceDefinition};

/// Lifetime of an event: one hour, the default of kube-apiserver's `--event-ttl`.
const TIME_TO_LIVE: Duration = Duration::from_secs(60 * 60);

/// Fields of a core event, and their names in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Fields of an event's object reference that a field selector may name.
const REFERENCE: [&str; 7] =
    ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

pub(super) fn definitions() -> Vec<ResourceDefinition> {
    let core = ResourceDefinition {
        schema: fields(include_str!("native/event.json")),
        selectable_fields: selectable("involvedObject", &["reportingComponent", "source"]),
        columns: printed(columns::involved_object, "message"),
        validate: Some(Arc::new(rules::event)),
        ..event("")
    };
    let newer = ResourceDefinition {
        schema: fields(include_str!("native/event.events.json")),
        selectable_fields: selectable("regarding", &["reportingController"]),
        columns: printed(columns::regarding, "note"),
        stored_as: Some("/events".to_owned()),
        validate: Some(Arc::new(rules::newer_event)),
        conversion: Some(Conversion { served: to_newer, stored: to_core }),
        ..event("events.k8s.io")
    };
    vec![core, newer]
}

fn event(group: &str) -> ResourceDefinition {
    ResourceDefinition {
        keep_newest: Some(MAX_EVENTS),
        time_to_live: Some(TIME_TO_LIVE),
        ..native(group, "Event", "events", &["ev"])
    }
}

fn selectable(about: &str, more: &[&str]) -> Vec<String> {
    let about = REFERENCE.iter().map(|part| format!("{about}.{part}"));
    let more = more.iter().chain(&["reason", "type"]).map(|field| (*field).to_owned());
    about.chain(more).collect()
}

fn printed(object: fn(&Value, jiff::Timestamp) -> Value, message: &str) -> Vec<Column> {
    vec![
        Column::with("Last Seen", columns::last_seen),
        Column::of("Type", ".type"),
        Column::of("Reason", ".reason"),
        Column::with("Object", object),
        Column::with("Subobject", columns::subobject).wide(),
        Column::with("Source", columns::source).wide(),
        Column::of("Message", &format!(".{message}")),
        Column::with("First Seen", columns::first_seen).wide(),
        Column::with("Count", columns::count).wide(),
        Column::name().wide(),
    ]
}

fn to_newer(event: &mut Value) {
    rename(event, NAMES);
    // `eventTime` is null if the core event has none.
    if let Some(map) = event.as_object_mut() {
        map.entry("eventTime").or_insert(Value::Null);
    }
}

fn to_core(event: &mut Value) {
    rename(event, NAMES.map(|(core, newer)| (newer, core)));
    if event["eventTime"].is_null()
        && let Some(map) = event.as_object_mut()
    {
        map.remove("eventTime");
    }
}

fn rename(event: &mut Value, names: [(&str, &str); NAMES.len()]) {
    let Some(map) = event.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}
