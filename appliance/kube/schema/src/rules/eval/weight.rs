//! Weight of a value: the amount of data that an operation must read. A value of a rule can contain
//! the same list many times, so weighing stops at a weight above every cost limit.

use serde_json::{Map, Value};

use super::val::Val;
use super::{CHARACTERS_PER_UNIT, PER_RULE_COST};

/// Maximum weight: more than the cost limit of a rule allows to read.
const MOST: u64 = (PER_RULE_COST + 1) * CHARACTERS_PER_UNIT;

/// Returns the number of bytes and items in a value and all values in it, at most [`MOST`].
pub(in crate::rules) fn weight(value: &Val<'_>) -> u64 {
    MOST - left_of(value, MOST)
}

/// Returns the weight of the lighter of two values. The time depends only on the lighter value.
pub(in crate::rules) fn lesser_weight(one: &Val<'_>, other: &Val<'_>) -> u64 {
    const FIRST: u64 = 1_024;
    const STEP: u64 = 16;
    let mut limit = FIRST;
    loop {
        let weighed = [one, other].map(|value| limit - left_of(value, limit));
        match weighed.into_iter().min() {
            Some(lesser) if lesser < limit || limit == MOST => return lesser,
            _ => limit = limit.saturating_mul(STEP).min(MOST),
        }
    }
}

/// Returns `limit` minus the weight of the value; 0 if the value is heavier.
fn left_of(value: &Val<'_>, limit: u64) -> u64 {
    let mut scales = Scales { left: limit };
    scales.val(value);
    scales.left
}

struct Scales {
    left: u64,
}

impl Scales {
    fn take(&mut self, weight: usize) {
        self.left = self.left.saturating_sub(weight as u64);
    }

    fn val(&mut self, value: &Val<'_>) {
        if self.left == 0 {
            return;
        }
        match value {
            Val::Text(text) => self.take(text.len()),
            Val::Items(items, _) => self.items(items),
            Val::Object(object) => self.fields(object.map),
            Val::Keyed(map, _) => self.fields(map),
            Val::List(items, _) => {
                for item in items.iter() {
                    self.take(1);
                    self.val(item);
                    if self.left == 0 {
                        return;
                    }
                }
            }
            Val::Map(entries) => {
                for (key, value) in entries.values() {
                    self.val(key);
                    self.val(value);
                    if self.left == 0 {
                        return;
                    }
                }
            }
            Val::Optional(Some(inner)) => self.val(inner),
            other => self.take(other.size().unwrap_or(1)),
        }
    }

    /// Weighs a JSON value; the recursion is limited by the depth of its schema.
    fn json(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.take(text.len()),
            Value::Array(items) => self.items(items),
            Value::Object(map) => self.fields(map),
            _ => self.take(1),
        }
    }

    fn items(&mut self, items: &[Value]) {
        for item in items {
            self.take(1);
            self.json(item);
            if self.left == 0 {
                return;
            }
        }
    }

    fn fields(&mut self, map: &Map<String, Value>) {
        for (name, value) in map {
            self.take(name.len());
            self.json(value);
            if self.left == 0 {
                return;
            }
        }
    }
}
