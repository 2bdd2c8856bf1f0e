//! Reading of the state of an outlet from a response. Pure.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::{Outlet, PlugState};
use crate::Error;

/// Maximum size of a compiled pattern in bytes.
const PATTERN_BYTES_MAX: usize = 256 << 10;

/// Reader of responses of one kind of plug.
pub struct Reader {
    pointer: String,
    watts: String,
    on: Regex,
    off: Regex,
}

impl Reader {
    pub fn new(state: &PlugState, outlet: &str) -> Result<Self, Error> {
        let pattern = |field, text: &str| {
            let compiled = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
            compiled.map_err(|error| Error::Invalid { field, reason: error.to_string() })
        };
        Ok(Self {
            pointer: state.pointer.replace("{outlet}", outlet),
            watts: state.watts.replace("{outlet}", outlet),
            on: pattern("state.on", &state.on)?,
            off: pattern("state.off", &state.off)?,
        })
    }

    /// Reads a response. The error is a sentence.
    pub fn read(&self, body: &[u8]) -> Result<Outlet, String> {
        let needs_json = !self.pointer.is_empty() || !self.watts.is_empty();
        let document: Value = match needs_json {
            true => serde_json::from_slice(body).map_err(|error| error.to_string())?,
            false => Value::Null,
        };
        let state = match self.pointer.as_str() {
            "" => String::from_utf8_lossy(body).trim().to_owned(),
            pointer => text(&document, pointer)
                .ok_or_else(|| format!("expected a text, number or boolean at {pointer}"))?,
        };
        let is_on = match (self.on.is_match(&state), self.off.is_match(&state)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        let watts = document.pointer(&self.watts).and_then(Value::as_f64);
        Ok(Outlet { is_on, watts: watts.filter(|_| !self.watts.is_empty()) })
    }
}

fn text(document: &Value, pointer: &str) -> Option<String> {
    match document.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
