//! Tests that an object of a compiled-in kind, written in one served version and patched in
//! another, loses no field at any depth.
//!
//! Environment variable `LOSSLESS_SEED=n`: runs only the seed `n`.

use std::sync::Arc;

use schema::{Additional, Node, Schema};
use serde_json::{Map, Value, json};

use super::super::super::{Configuration, FieldValidation, Part, Patch, Strictness, WriteOptions};
use super::super::{Bench, bench};
use crate::StatusError;
use crate::definition::ResourceDefinition;

/// Number of random objects for each pair of versions.
const SEEDS: u64 = 4;
/// Maximum fields that are removed from an object because of rules beyond its schema.
const MAX_REFUSED: usize = 64;
/// Valid texts for fields that do not accept arbitrary text.
const SAMPLES: [&str; 9] = [
    "192.168.7.9",
    "192.168.7.0/24",
    "52:54:00:12:34:56",
    "2026-11-20T10:00:00Z",
    "http://files.example/x",
    "ipmitool",
    "100",
    "10Gi",
    "True",
];

struct Random(u64);

impl Random {
    /// Returns a number below `end` (xorshift64*).
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn text(&mut self) -> String {
        format!("t{}", self.below(1_000_000))
    }

    fn anything(&mut self) -> Value {
        json!({ self.text(): { "deep": [self.below(9), { self.text(): self.text() }] } })
    }
}

/// Makes a value of `node`, whose JSON is `source`, with most of its fields.
fn value(node: &Node, source: &Value, random: &mut Random) -> Value {
    match node.kind() {
        "string" => text(source, random),
        "integer" | "number" => {
            let least = source["minimum"].as_u64().unwrap_or(0);
            json!(least + random.below(30))
        }
        "boolean" => json!(random.below(2) == 0),
        "array" => match node.items() {
            Some(items) => {
                (0..=random.below(3)).map(|_| value(items, &source["items"], random)).collect()
            }
            None => json!([random.anything()]),
        },
        _ if node.is_int_or_string() => json!(random.text()),
        _ => fields(node, source, random),
    }
}

fn text(source: &Value, random: &mut Random) -> Value {
    if let Some(allowed) = source["enum"].as_array() {
        let at = random.below(allowed.len() as u64) as usize;
        return allowed[at].clone();
    }
    let schema = json!({ "type": "object", "properties": { "v": source } });
    let schema = Schema::parse(&schema).unwrap();
    let own = random.text();
    let samples = std::iter::once(own.as_str()).chain(SAMPLES);
    let mut samples = samples.map(|text| json!(text));
    let fits = |text: &Value| schema.validate(&json!({ "v": text }), None).is_empty();
    samples.find(fits).unwrap_or_else(|| panic!("no sample fits {source}"))
}

fn fields(node: &Node, source: &Value, random: &mut Random) -> Value {
    let mut fields = Map::new();
    for (name, below) in node.properties() {
        // One version requires these fields, and another does not.
        let wanted = node.required().contains(name)
            || ["device", "spec", "template"].contains(&name.as_str());
        if wanted || random.below(10) < 8 {
            fields.insert(name.clone(), value(below, &source["properties"][name], random));
        }
    }
    match node.additional() {
        Some(Additional::Of(below)) => {
            let below = value(below, &source["additionalProperties"], random);
            fields.insert(random.text(), below);
        }
        Some(Additional::Any(true)) => drop(fields.insert(random.text(), json!(random.text()))),
        _ => {}
    }
    if source["x-kubernetes-preserve-unknown-fields"] == true {
        fields.insert(random.text(), random.anything());
    }
    Value::Object(fields)
}

/// Removes the field at the path of a message, such as `spec.interfaces[0].dhcp.mac`. If an object
/// as a whole breaks a rule, only its last field is removed.
fn take_out(object: &mut Value, path: &str) -> bool {
    let path = path.replace('[', ".").replace(']', "");
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", &path));
    let mut steps = parents.split('.').filter(|step| !step.is_empty());
    let parent = steps.try_fold(object, |at, step| match at {
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        other => other.get_mut(step),
    });
    let gone = match parent {
        Some(Value::Object(fields)) => match fields.get_mut(last) {
            Some(Value::Object(below)) if !below.is_empty() => take_last(below),
            _ => fields.remove(last),
        },
        Some(Value::Array(items)) => {
            let item = last.parse::<usize>().ok().and_then(|at| items.get_mut(at));
            match item.and_then(Value::as_object_mut).filter(|below| below.len() > 1) {
                Some(below) => take_last(below),
                None => items.pop(),
            }
        }
        _ => None,
    };
    gone.is_some()
}

fn take_last(fields: &mut Map<String, Value>) -> Option<Value> {
    let last = fields.keys().next_back().cloned();
    last.and_then(|last| fields.remove(&last))
}

fn by(manager: &str) -> WriteOptions {
    let strict = FieldValidation { strictness: Strictness::Strict, ..FieldValidation::default() };
    WriteOptions { manager: Some(manager.to_owned()), fields: strict, ..WriteOptions::default() }
}

/// Repeats `write`, each time without the refused fields, until it succeeds.
async fn settle(
    object: &mut Value,
    write: impl AsyncFn(Value) -> Result<Value, StatusError>,
) -> Value {
    let mut refused = 0;
    loop {
        match write(object.clone()).await {
            Ok(written) => return written,
            Err(error) => {
                let mut gone = 0;
                for cause in &error.details.causes {
                    // If a required field is missing, the object that lacks it is removed.
                    let parent = cause.field.rsplit_once('.').map_or("", |(parent, _)| parent);
                    let out = take_out(object, &cause.field) || take_out(object, parent);
                    gone += usize::from(out);
                }
                refused += gone;
                assert!(gone > 0 && refused <= MAX_REFUSED, "{error}\n{object:#}");
            }
        }
    }
}

struct Pair<'a> {
    bench: &'a Bench,
    writer: &'a ResourceDefinition,
    patcher: &'a ResourceDefinition,
}

impl Pair<'_> {
    fn namespace(&self) -> &'static str {
        if self.writer.namespaced { "default" } else { "" }
    }

    async fn written(&self, name: &str, random: &mut Random) -> Value {
        let (engine, namespace) = (&self.bench.engine, self.namespace());
        let schema = self.writer.schema.as_ref().unwrap();
        let mut made = Value::Null;
        while made["spec"].as_object().is_none_or(Map::is_empty) {
            made = value(schema.root(), schema.source(), random);
        }
        made["apiVersion"] = json!(self.writer.api_version());
        made["kind"] = json!(self.writer.kind);
        made["metadata"] = json!({ "name": name });
        let status = made.as_object_mut().and_then(|fields| fields.remove("status"));
        let status = status.unwrap_or_default();
        let address = self.writer.address();
        let mut object = settle(&mut made, async |object| {
            engine.create(&address, namespace, object, by("writer")).await
        })
        .await;
        if self.writer.status_subresource && status.is_object() {
            object["status"] = status;
            let status = WriteOptions { part: Part::Status, ..by("writer") };
            object = settle(&mut object, async |object| {
                engine.update(&address, namespace, name, object, status.clone()).await
            })
            .await;
        }
        object
    }

    /// Makes the writes of a client of the other version that change no field in spec and status.
    async fn patch(&self, name: &str) {
        let (engine, namespace) = (&self.bench.engine, self.namespace());
        let address = self.patcher.address();
        let label = |key: &str| json!({ "metadata": { "labels": { key: "b" } } });
        let merge = Patch::merge(json!({ "metadata": { "annotations": { "a": "b" } } })).unwrap();
        let json_patch =
            json!([{ "op": "add", "path": "/metadata/labels", "value": { "a": "b" } }]);
        for patch in [merge, Patch::json(&json_patch).unwrap()] {
            engine.patch(&address, namespace, name, patch, by("patcher")).await.unwrap();
        }
        if self.patcher.status_subresource {
            let options = WriteOptions { part: Part::Status, ..by("patcher") };
            let patch = Patch::merge(label("s")).unwrap();
            engine.patch(&address, namespace, name, patch, options).await.unwrap();
        }
        let mut object = label("c");
        object["apiVersion"] = json!(self.patcher.api_version());
        object["kind"] = json!(self.patcher.kind);
        object["metadata"]["name"] = json!(name);
        let config = Configuration { object, force: false, uncreatable: None };
        engine.apply(&address, namespace, name, config, by("applier")).await.unwrap();
        let mut whole = engine.get(&address, namespace, name).await.unwrap();
        whole["metadata"]["labels"]["d"] = json!("e");
        engine.update(&address, namespace, name, whole, by("editor")).await.unwrap();
    }

    async fn check(&self, name: &str, seed: u64) {
        let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let before = self.written(name, random).await;
        self.patch(name).await;
        let engine = &self.bench.engine;
        let after = engine.get(&self.writer.address(), self.namespace(), name).await.unwrap();
        let context = format!("LOSSLESS_SEED={seed}: {:?}, {:?}", self.writer, self.patcher);
        for part in ["spec", "status", "data"] {
            assert_eq!(before.get(part), after.get(part), "{context}");
        }
        assert_eq!(before["metadata"]["generation"], after["metadata"]["generation"], "{context}");
        let entries = after["metadata"]["managedFields"].as_array().unwrap();
        assert!(entries.iter().any(|entry| entry["manager"] == "writer"), "{context}\n{after}");
    }
}

#[tokio::test]
async fn an_object_written_in_one_version_and_patched_in_another_loses_nothing() {
    let bench = bench().await;
    let registry = bench.engine.registry();
    let custom = registry.all().iter().filter(|one| !one.native && one.schema.is_some());
    // Network is skipped: it has one version, and its addresses depend on each other.
    let custom: Vec<&Arc<ResourceDefinition>> =
        custom.filter(|one| !["example.org", "tinbox.dev"].contains(&one.group.as_str())).collect();
    let one = std::env::var("LOSSLESS_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = one.map_or(1..SEEDS + 1, |seed| seed..seed + 1);
    let mut at = 0;
    for writer in &custom {
        for patcher in custom.iter().filter(|other| other.id() == writer.id()) {
            for seed in seeds.clone() {
                at += 1;
                let pair = Pair { bench: &bench, writer, patcher };
                pair.check(&format!("n{at}"), seed).await;
            }
        }
    }
    assert!(at >= 26 * seeds.count(), "{at}");
}
