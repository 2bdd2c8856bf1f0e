//! CustomResourceDefinitions: one as a whole, a schema with objects of any form, one rule in CEL.

#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use schema::crd::{self, CustomResourceDefinition};
use schema::{FieldError, Schema, check_structural};
use serde_json::{Value, json};

/// Maximum bytes of all error texts for an input of a few KiB.
const TOLD_MAX: usize = 16 << 20;

fn told(errors: &[FieldError]) {
    let length: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(length <= TOLD_MAX, "{length} bytes of mistakes");
}

/// Checks properties of a schema with any objects: pruning and defaulting twice is the same as
/// once, and the rules of an admitted schema compile.
fn examine(source: &Value, new: &Value, old: Option<&Value>) {
    let errors = check_structural(source, "schema");
    told(&errors);
    let Ok(schema) = Schema::parse(source) else {
        assert!(!errors.is_empty(), "admitted, and cannot be read");
        return;
    };
    let mut object = new.clone();
    schema.prune(&mut object);
    if errors.is_empty() {
        let pruned = object.clone();
        assert!(schema.prune(&mut object).is_empty() && object == pruned, "pruned twice");
        schema.default(&mut object);
        let defaulted = object.clone();
        schema.default(&mut object);
        assert_eq!(object, defaulted, "defaulted twice");
    }
    for found in [schema.check(&object, old), schema.check_status(&object, old)] {
        told(&found.errors);
        let broken = found.errors.iter().any(|error| error.detail.contains("rule compile error"));
        assert!(!broken || !errors.is_empty(), "admitted, and does not compile");
    }
}

fn definition(mut object: Value, old: Value, instance: &Value) {
    crd::prune(&mut object);
    crd::default(&mut object);
    crd::remember_storage_version(&mut object);
    told(&crd::check(&object));
    told(&crd::check_update(&object, &old));
    let _ = crd::warnings(&object, Some(&old));
    let Ok(parsed) = CustomResourceDefinition::parse(&object) else { return };
    for version in parsed.versions {
        if let Some(schema) = version.schema {
            examine(schema.source(), instance, None);
        }
    }
}

/// Schema of a kind with a field of every type and the validation rule `rule`.
fn ruled(rule: &str, message: &str, optional: bool) -> Value {
    let text = || json!({ "type": "string", "maxLength": 64 });
    let mut rule = json!({ "rule": rule });
    if !message.is_empty() {
        rule["messageExpression"] = json!(message);
    }
    if optional {
        rule["optionalOldSelf"] = json!(true);
    }
    let list = |of: Value| json!({ "type": "array", "items": of, "maxItems": 64 });
    let mut set = list(text());
    set["x-kubernetes-list-type"] = json!("set");
    let item = json!({
        "type": "object", "properties": { "k": text(), "v": { "type": "integer" } },
        "required": ["k"],
    });
    let mut keyed = list(item);
    keyed["x-kubernetes-list-type"] = json!("map");
    keyed["x-kubernetes-list-map-keys"] = json!(["k"]);
    let format = |format: &str| json!({ "type": "string", "format": format, "maxLength": 64 });
    json!({
        "type": "object",
        "properties": {
            "b": { "type": "boolean" },
            "i": { "type": "integer" },
            "d": { "type": "number" },
            "t": text(),
            "l": list(text()),
            "n": list(list(json!({ "type": "integer" }))),
            "s": set,
            "k": keyed,
            "m": { "type": "object", "additionalProperties": text(), "maxProperties": 64 },
            "o": { "type": "object", "properties": { "in": text(), "a-b": text() } },
            "x": { "x-kubernetes-int-or-string": true },
            "time": format("date-time"),
            "date": format("date"),
            "span": format("duration"),
            "bytes": format("byte"),
            "p": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
        "x-kubernetes-validations": [rule],
    })
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    if choice % 4 == 0 {
        let rule = String::from_utf8_lossy(input.line());
        let message = String::from_utf8_lossy(input.line());
        let source = ruled(&rule, &message, choice & 4 != 0);
        let mut next = || serde_json::from_slice::<Value>(input.line()).unwrap_or_default();
        let (new, old) = (next(), next());
        return examine(&source, &new, (!old.is_null()).then_some(&old));
    }
    let mut next = || serde_json::from_slice::<Value>(input.line()).unwrap_or_default();
    let (first, new, old) = (next(), next(), next());
    match choice % 4 {
        1 => definition(first, old, &new),
        2 => examine(&first, &new, (!old.is_null()).then_some(&old)),
        _ => {
            let pattern = String::from_utf8_lossy(input.line());
            let format = String::from_utf8_lossy(input.line());
            let source = json!({ "type": "string", "pattern": pattern, "format": format });
            examine(&source, &json!(String::from_utf8_lossy(input.0)), None);
        }
    }
});
