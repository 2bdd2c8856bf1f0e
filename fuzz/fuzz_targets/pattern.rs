//! The pattern of a rule set, up to the first line feed, and the document of an agent, after it.

#![no_main]

use event_pattern::{Event, Pattern};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, document) = text.split_once('\n').unwrap_or((&text, ""));
    let known = json!({ "a": { "b": [{ "c": "x", "d": 4 }, { "c": ["y", null] }] } });
    let document = serde_json::from_str(document).unwrap_or(known);
    let (Ok(pattern), Ok(event)) = (Pattern::parse(pattern), Event::new(&document)) else { return };
    let once = pattern.fits(&event);
    assert_eq!(once, pattern.fits(&event), "it fits or it does not");
});
