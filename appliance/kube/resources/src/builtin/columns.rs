//! Table columns of Kubernetes' own kinds whose cells no JSON path can express (Kubernetes
//! `pkg/printers/internalversion/printers.go`).

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::definition::{Column, ColumnType};
use crate::table;

/// Cell text for an empty list.
const NONE: &str = "<none>";

/// Returns the column `Age` of Kubernetes' own kinds: the time since creation as text. Tables of
/// custom resources contain the timestamp instead.
pub(super) fn age() -> Column {
    Column {
        description: "Time since the object was created.".to_owned(),
        ..Column::with("Age", |object, now| since(&object["metadata"]["creationTimestamp"], now))
    }
}

/// Returns the column `Created At`: the creation time in RFC 3339.
pub(super) fn created_at() -> Column {
    Column {
        kind: ColumnType::Date,
        description: "Creation time of the object.".to_owned(),
        ..Column::with("Created At", |object, _| object["metadata"]["creationTimestamp"].clone())
    }
}

fn since(time: &Value, now: Timestamp) -> Value {
    json!(time.as_str().map_or_else(|| "<unknown>".to_owned(), |text| table::age(text, now)))
}

/// Returns the number of keys in a Secret or ConfigMap.
pub(super) fn data(object: &Value, _now: Timestamp) -> Value {
    let keys = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    json!(keys("data") + keys("binaryData"))
}

/// Returns the time since the last occurrence of an event, from its first filled time field.
pub(super) fn last_seen(event: &Value, now: Timestamp) -> Value {
    let fields = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["deprecatedLastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
        &event["deprecatedFirstTimestamp"],
    ];
    since(fields.into_iter().find(|time| time.is_string()).unwrap_or(&Value::Null), now)
}

/// Returns the time since the first occurrence of an event.
pub(super) fn first_seen(event: &Value, now: Timestamp) -> Value {
    let fields =
        [&event["firstTimestamp"], &event["deprecatedFirstTimestamp"], &event["eventTime"]];
    since(fields.into_iter().find(|time| time.is_string()).unwrap_or(&Value::Null), now)
}

/// Returns the number of occurrences of an event; at least 1.
pub(super) fn count(event: &Value, _now: Timestamp) -> Value {
    let counts = [&event["series"]["count"], &event["count"], &event["deprecatedCount"]];
    let count = counts.into_iter().find_map(Value::as_i64).filter(|count| *count > 0);
    json!(count.unwrap_or(1))
}

/// Returns the object of a core event, such as `hardware/nuc-1`.
pub(super) fn involved_object(event: &Value, _now: Timestamp) -> Value {
    reference(&event["involvedObject"])
}

/// Returns the object of an `events.k8s.io` event, in the form of [`involved_object`].
pub(super) fn regarding(event: &Value, _now: Timestamp) -> Value {
    reference(&event["regarding"])
}

fn reference(object: &Value) -> Value {
    let part = |field: &str| object[field].as_str().unwrap_or_default();
    match part("name") {
        "" => json!(part("kind").to_lowercase()),
        name => json!(format!("{}/{name}", part("kind").to_lowercase())),
    }
}

/// Returns the `fieldPath` of the object of an event; empty if unset.
pub(super) fn subobject(event: &Value, _now: Timestamp) -> Value {
    let about = ["involvedObject", "regarding"].map(|field| &event[field]["fieldPath"]);
    json!(about.into_iter().find_map(Value::as_str).unwrap_or_default())
}

/// Returns the component that reported an event, and the component's host: `kubelet, node-1`.
pub(super) fn source(event: &Value, _now: Timestamp) -> Value {
    let old =
        if event["source"].is_object() { &event["source"] } else { &event["deprecatedSource"] };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut parts = [text(&old["component"]), text(&old["host"])];
    if parts.iter().all(String::is_empty) {
        let controllers = ["reportingComponent", "reportingController"].map(|field| &event[field]);
        let named = controllers.into_iter().find_map(Value::as_str).unwrap_or_default();
        parts = [named.to_owned(), text(&event["reportingInstance"])];
    }
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    json!(parts.join(", "))
}

/// Returns the role that a binding grants, such as `ClusterRole/view`.
pub(super) fn role(binding: &Value, _now: Timestamp) -> Value {
    let part = |field: &str| binding["roleRef"][field].as_str().unwrap_or_default();
    json!(format!("{}/{}", part("kind"), part("name")))
}

/// Returns the names of the users of a binding.
pub(super) fn users(binding: &Value, _now: Timestamp) -> Value {
    holders(binding, "User")
}

/// Returns the names of the groups of a binding.
pub(super) fn groups(binding: &Value, _now: Timestamp) -> Value {
    holders(binding, "Group")
}

/// Returns the names of the service accounts of a binding.
pub(super) fn service_accounts(binding: &Value, _now: Timestamp) -> Value {
    holders(binding, "ServiceAccount")
}

fn holders(binding: &Value, kind: &str) -> Value {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    let names = subjects.filter(|one| one["kind"] == kind).map(|one| {
        let name = one["name"].as_str().unwrap_or_default();
        match one["namespace"].as_str().filter(|_| kind == "ServiceAccount") {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        }
    });
    json!(names.collect::<Vec<_>>().join(", "))
}

/// Returns the type of a service; `ClusterIP` if unset.
pub(super) fn service_type(service: &Value, _now: Timestamp) -> Value {
    json!(service["spec"]["type"].as_str().unwrap_or("ClusterIP"))
}

/// Returns the cluster IP of a service; `<none>` if unset.
pub(super) fn cluster_ip(service: &Value, _now: Timestamp) -> Value {
    json!(service["spec"]["clusterIP"].as_str().unwrap_or(NONE))
}

/// Returns the external IPs of a service, joined by commas; `<none>` if empty.
pub(super) fn external_ip(service: &Value, _now: Timestamp) -> Value {
    let listed = service["spec"]["externalIPs"].as_array().into_iter().flatten();
    let listed: Vec<&str> = listed.filter_map(Value::as_str).collect();
    json!(if listed.is_empty() { NONE.to_owned() } else { listed.join(",") })
}

/// Returns the ports of a service, such as `80/TCP,443:30443/TCP`; `<none>` if empty.
pub(super) fn ports(service: &Value, _now: Timestamp) -> Value {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten().map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_i64().filter(|node| *node > 0) {
            Some(node) => format!("{}:{node}/{protocol}", port["port"]),
            None => format!("{}/{protocol}", port["port"]),
        }
    });
    let ports: Vec<String> = ports.collect();
    json!(if ports.is_empty() { NONE.to_owned() } else { ports.join(",") })
}

/// Returns the label selector of a service, such as `app=web`; `<none>` if empty.
pub(super) fn selector(service: &Value, _now: Timestamp) -> Value {
    let pairs = service["spec"]["selector"].as_object().into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let pairs: Vec<String> = pairs.collect();
    json!(if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") })
}
