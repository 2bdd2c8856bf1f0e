//! Cells of core kinds that no JSON path can say.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::age;

/// When an event was last seen, as the time since: the newest of the fields recorders fill.
pub(super) fn last_seen(event: &Value, now: Timestamp) -> Value {
    let fields = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
        &event["metadata"]["creationTimestamp"],
    ];
    let text = fields.into_iter().find_map(Value::as_str);
    json!(text.map_or_else(|| "<unknown>".to_owned(), |text| age(text, now)))
}

/// `hardware/nuc-1`: what the event is about.
pub(super) fn involved_object(event: &Value, _now: Timestamp) -> Value {
    let part = |field: &str| event["involvedObject"][field].as_str().unwrap_or_default();
    json!(format!("{}/{}", part("kind").to_lowercase(), part("name")))
}
