//! Old values of a field, for the comparison with its new value.
//!
//! List items may move: a changed item is compared with every old item that changed too.

use serde_json::Value;

/// Maximum number of old values that a new value is compared with. In a list with more changed
/// items, only the first old values are used.
const MAX_FORMER: usize = 256;

/// Old values of a field: one for a field of objects, several for a field in list items.
#[derive(Debug, Default)]
pub(super) struct Former<'a>(Vec<&'a Value>);

/// Old items of a list, by position.
pub(super) struct FormerItems<'a> {
    /// Unchanged items at the front of the list.
    front: &'a [Value],
    /// Number of items in the new list.
    length: usize,
    /// Unchanged items at the end of the list.
    back: &'a [Value],
    /// Old items between the unchanged ones.
    changed: Vec<&'a Value>,
}

impl<'a> Former<'a> {
    pub fn of(value: &'a Value) -> Self {
        Self(vec![value])
    }

    /// Returns the old values of the field `name`.
    pub fn field(&self, name: &str) -> Self {
        Self(self.0.iter().filter_map(|value| value.get(name)).collect())
    }

    /// Returns true if `value` is an old value of the field.
    pub fn has(&self, value: &Value) -> bool {
        self.0.contains(&value)
    }

    /// Returns the old value; `None` unless there is exactly one.
    pub fn only(&self) -> Option<&'a Value> {
        match self.0.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the old items of a list whose new items are `items`.
    pub fn items(&self, items: &[Value]) -> FormerItems<'a> {
        let length = items.len();
        let lists = || self.0.iter().filter_map(|value| value.as_array());
        let old = match self.only().and_then(Value::as_array) {
            Some(old) => old.as_slice(),
            None => {
                let changed = lists().flatten().take(MAX_FORMER).collect();
                return FormerItems { front: &[], length, back: &[], changed };
            }
        };
        let same = |(one, other): &(&Value, &Value)| one == other;
        let front = old.iter().zip(items).take_while(same).count();
        let (front, rest) = old.split_at(front);
        let left = items.iter().skip(front.len());
        let back = rest.iter().rev().zip(left.rev()).take_while(same).count();
        let (changed, back) = rest.split_at(rest.len() - back);
        let changed = changed.iter().take(MAX_FORMER).collect();
        FormerItems { front, length, back, changed }
    }
}

impl<'a> FormerItems<'a> {
    /// Returns the old values of the new item at `index`.
    pub fn item(&self, index: usize) -> Former<'a> {
        if let Some(same) = self.front.get(index) {
            return Former::of(same);
        }
        let behind = self.length.saturating_sub(index);
        match self.back.len().checked_sub(behind).and_then(|at| self.back.get(at)) {
            Some(same) => Former::of(same),
            None => Former(self.changed.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::Schema;

    /// Prunes with a schema that knows only `a`, in objects and in items.
    fn pruned(new: &Value, old: &Value) -> (Value, Vec<String>) {
        let known = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
        let list = json!({ "type": "array", "items": known });
        let schema = json!({ "type": "object", "properties": { "spec": known, "list": list } });
        let mut new = new.clone();
        let unknown = Schema::parse(&schema).unwrap().prune_beside(&mut new, old);
        (new, unknown)
    }

    #[test]
    fn fields_of_a_wider_schema_stay_as_they_were() {
        let item = |a: u8, b: u8| json!({ "a": a, "b": b });
        let old = json!({ "spec": { "a": 1, "b": { "c": [1] } }, "x": 1,
            "list": [item(1, 1), item(2, 2), item(3, 3)] });
        assert_eq!(pruned(&old, &old), (old.clone(), vec![]));
        // Known fields change; items are added, removed and moved.
        for list in [
            json!([item(9, 1), item(2, 2), item(3, 3)]),
            json!([item(2, 2), item(3, 3)]),
            json!([item(3, 3), item(1, 1), item(9, 2)]),
            json!([item(1, 1), { "a": 7 }, item(2, 2), item(3, 3)]),
        ] {
            let new = json!({ "spec": { "a": 2, "b": { "c": [1] } }, "x": 1, "list": list });
            assert_eq!(pruned(&new, &old), (new, vec![]));
        }
        // An unknown field with a new value in the request is reported and has no effect.
        let new = json!({ "spec": { "a": 2, "b": 3, "d": 1 }, "x": 1, "list": [item(9, 9)] });
        let kept = json!({ "spec": { "a": 2, "b": { "c": [1] } }, "x": 1, "list": [{ "a": 9 }] });
        let unknown =
            ["list[0].b", "spec.b", "spec.d"].map(|path| format!("unknown field \"{path}\""));
        assert_eq!(pruned(&new, &old), (kept, unknown.to_vec()));
        // A removed field stays removed.
        let less = json!({ "spec": { "a": 1 }, "list": [] });
        assert_eq!(pruned(&less, &old), (less, vec![]));
    }
}
