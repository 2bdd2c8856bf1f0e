//! Life cycle of one object: created, updated, patched and applied by several managers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::kinds::{KIND, VERSIONS, models};
use super::random::Random;

/// Number of writes to one object.
pub const STEPS: i64 = 20;
/// Maximum depth of generated content where the schema sets no bound.
const DEPTH: usize = 3;

const WORDS: [&str; 6] = ["a", "b", "c", "<d>&", "e\"f\\", "é"];
const KEYS: [&str; 4] = ["a", "b", "c.d/e", "f"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One write, with its input.
pub struct Step {
    /// True for server-side apply, false for any other write.
    pub apply: bool,
    /// True to override conflicts.
    pub force: bool,
    /// Field manager of the write.
    pub manager: String,
    /// The version of the request.
    pub version: String,
    /// The subresource, empty for the object.
    pub subresource: String,
    /// Fields that a write to this subresource cannot change.
    pub reset: Vec<String>,
    /// The stored object, null before it is created.
    pub live: Value,
    /// Applied configuration, or the object after an update.
    pub object: Value,
}

/// An object and its schema between two writes.
pub struct Life {
    models: BTreeMap<String, Value>,
    live: Value,
    managers: usize,
    schema: usize,
}

impl Life {
    /// An object that does not exist yet.
    pub fn new(random: &mut Random) -> Self {
        let managers = if random.chance(20) { 16 } else { 4 };
        Self { models: models(false), live: Value::Null, managers, schema: random.below(3) }
    }

    /// Index of the schema for the next write: 0 and 1 are before and after a change of the
    /// definition; 2 has no schema.
    pub fn schema(&mut self, random: &mut Random) -> usize {
        if self.schema < 2 && random.chance(10) {
            self.schema = 1 - self.schema;
        }
        self.schema
    }

    /// Stores the result of a write; a refused write changes nothing.
    pub fn take(&mut self, object: Value) {
        if object.is_null() {
            return;
        }
        self.live = object;
        self.live["metadata"]["uid"] = json!("uid");
        self.live["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    }

    /// Generates the next write.
    pub fn step(&mut self, random: &mut Random) -> Step {
        let version = random.pick(&[VERSIONS[0], VERSIONS[0], VERSIONS[0], VERSIONS[1]]);
        if !self.live.is_null() {
            self.live["apiVersion"] = json!(version);
        }
        let apply = random.chance(55);
        let on_status = !self.live.is_null() && random.chance(10);
        let object = match (apply, self.live.is_null()) {
            (true, _) => self.configuration(random),
            (false, true) => self.whole(random),
            (false, false) => self.changed(random),
        };
        let mut object = object;
        object["apiVersion"] = json!(version);
        if random.chance(1) && apply {
            object["apiVersion"] = json!("example.com/v0");
        }
        let manager = match random.below(10) {
            0 => "kubectl".to_owned(),
            _ => format!("m{}", random.below(self.managers)),
        };
        Step {
            apply,
            force: random.chance(40),
            manager,
            version: version.to_owned(),
            subresource: if on_status { "status".to_owned() } else { String::new() },
            reset: vec![if on_status { "spec".to_owned() } else { "status".to_owned() }],
            live: self.live.clone(),
            object,
        }
    }

    fn whole(&self, random: &mut Random) -> Value {
        let mut object = self.configuration(random);
        if random.chance(30) {
            let mut applied = self.configuration(random);
            applied["metadata"].as_object_mut().unwrap().remove("annotations");
            object["metadata"]["annotations"] = json!({ LAST_APPLIED: applied.to_string() });
        }
        object
    }

    /// Random applied configuration: some fields of some parts, at times null, twice or of another
    /// type.
    fn configuration(&self, random: &mut Random) -> Value {
        let mut object = json!({ "kind": KIND, "metadata": { "name": "n" } });
        for part in ["spec", "status"] {
            if random.chance(if part == "spec" { 95 } else { 20 }) {
                let model = &self.models["Thing1"]["properties"][part];
                object[part] = self.generate(random, model, 0);
            }
        }
        for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
            if random.chance(15) {
                let model = &self.models["Meta"]["properties"][field];
                object["metadata"][field] = self.generate(random, model, 0);
            }
        }
        if random.chance(3) {
            object["spec"] = json!({ "undeclared": 1 });
        }
        object
    }

    /// Random update of the object: some fields changed, some removed, some added.
    fn changed(&self, random: &mut Random) -> Value {
        let mut object = self.live.clone();
        let other = self.configuration(random);
        for part in ["spec", "status", "metadata"] {
            let mut fields = object[part].as_object().cloned().unwrap_or_default();
            let kept = ["name", "uid", "creationTimestamp", "managedFields"];
            for (name, value) in other[part].as_object().into_iter().flatten() {
                if random.chance(40) && !kept.contains(&name.as_str()) {
                    fields.insert(name.clone(), value.clone());
                }
            }
            fields.retain(|name, _| kept.contains(&name.as_str()) || !random.chance(10));
            if !fields.is_empty() || random.chance(10) {
                object[part] = Value::Object(fields);
            }
        }
        self.change_managers(random, &mut object);
        object
    }

    fn change_managers(&self, random: &mut Random, object: &mut Value) {
        let metadata = object["metadata"].as_object_mut().unwrap();
        let gone = json!({
            "manager": "gone", "operation": "Update", "apiVersion": "example.com/v0",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:count": {} } },
            "time": "2019-01-01T00:00:00Z",
        });
        match random.below(30) {
            0 => drop(metadata.remove("managedFields")),
            1 => drop(metadata.insert("managedFields".to_owned(), json!([]))),
            2 => drop(metadata.insert("managedFields".to_owned(), json!([{}]))),
            3 => {
                let wrong = json!([{ "manager": "x", "operation": "Other" }]);
                metadata.insert("managedFields".to_owned(), wrong);
            }
            4 | 5 => {
                let entries = metadata.entry("managedFields").or_insert_with(|| json!([]));
                entries.as_array_mut().unwrap().push(gone);
            }
            _ => {}
        }
    }

    /// Random value of the model.
    fn generate(&self, random: &mut Random, model: &Value, depth: usize) -> Value {
        if let Some(name) = model["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            return self.generate(random, &self.models[name], depth + 1);
        }
        if random.chance(2) {
            return Value::Null;
        }
        match model["type"].as_str() {
            Some("string") if random.chance(99) => json!(random.pick(&WORDS)),
            Some("integer") if random.chance(99) => json!(random.below(4)),
            Some("number") => {
                [json!(1), json!(2), json!(1.5), json!(-0.25)][random.below(4)].clone()
            }
            Some("boolean") => json!(random.chance(50)),
            Some("object") if model["x-kubernetes-preserve-unknown-fields"] == true => {
                Value::Object(self.unknown_fields(random, 0))
            }
            Some("object") => self.object(random, model, depth),
            Some("array") => self.array(random, model, depth),
            _ => self.unknown(random, depth),
        }
    }

    fn object(&self, random: &mut Random, model: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let often = if depth == 0 { 25 } else { 45 };
        for (name, model) in model["properties"].as_object().into_iter().flatten() {
            if depth <= DEPTH && random.chance(often) {
                fields.insert(name.clone(), self.generate(random, model, depth + 1));
            }
        }
        if model["additionalProperties"].is_object() {
            for _ in 0..random.below(3) {
                let value = self.generate(random, &model["additionalProperties"], depth + 1);
                fields.insert(random.pick(&KEYS).to_owned(), value);
            }
        }
        Value::Object(fields)
    }

    fn array(&self, random: &mut Random, model: &Value, depth: usize) -> Value {
        let mut items: Vec<Value> = Vec::new();
        for _ in 0..random.below(4) {
            let mut item = self.generate(random, &model["items"], depth + 1);
            let keys = model["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            for key in keys.filter_map(Value::as_str) {
                let of = &self.models["Node"]["properties"][key];
                let of = Some(of).filter(|of| !of.is_null());
                let of = of.unwrap_or(&model["items"]["properties"][key]);
                // A key with a default is often missing; any other key rarely.
                if item.is_object() && !random.chance(if key == "protocol" { 40 } else { 1 }) {
                    // Go prints an object inside a path in the random order of its maps.
                    let value = self.generate(random, of, depth + 1);
                    item[key] = if value.is_object() { Value::Null } else { value };
                }
            }
            let is_same = |other: &Value| same_item(model, other, &item);
            let sorted = model["x-kubernetes-list-type"].is_string();
            if !sorted || !items.iter().any(is_same) || random.chance(3) {
                items.push(item);
            }
        }
        Value::Array(items)
    }

    fn unknown(&self, random: &mut Random, depth: usize) -> Value {
        match random.below(if depth > DEPTH { 3 } else { 5 }) {
            0 => json!(random.below(3)),
            1 => json!(random.pick(&WORDS)),
            2 => json!(random.chance(50)),
            3 => json!([self.unknown(random, DEPTH + 1)]),
            _ => Value::Object(self.unknown_fields(random, depth + 1)),
        }
    }

    fn unknown_fields(&self, random: &mut Random, depth: usize) -> Map<String, Value> {
        let mut fields = Map::new();
        for _ in 0..random.below(3) {
            fields.insert(random.pick(&KEYS).to_owned(), self.unknown(random, depth + 1));
        }
        fields
    }
}

/// True when two items are the same element of the list, by its map keys.
fn same_item(model: &Value, one: &Value, other: &Value) -> bool {
    let default = |key: &str| model["items"]["properties"][key]["default"].clone();
    let key = |item: &Value, key: &str| match &item[key] {
        Value::Null => default(key),
        value => value.clone(),
    };
    match model["x-kubernetes-list-map-keys"].as_array() {
        Some(keys) => {
            let mut keys = keys.iter().filter_map(Value::as_str);
            keys.all(|name| key(one, name) == key(other, name))
        }
        None => one == other,
    }
}
