//! Processing of a client's object by the kind's schema: unknown fields are reported and dropped,
//! defaults are added, and the object is validated.

use serde_json::Value;

use super::native;
use crate::definition::ResourceDefinition;
use crate::engine::Part;
use crate::object::{MAX_WARNINGS, Warnings, bytes, metadata_mut};
use crate::status_error::{Reason, StatusError};
use schema::{FieldError, Findings, Mistake};

/// Handling of unknown and duplicate fields in a write (`fieldValidation`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Drops unknown and duplicate fields silently.
    #[default]
    Ignore,
    /// Drops unknown and duplicate fields, and warns the client.
    Warn,
    /// Refuses a write with unknown or duplicate fields.
    Strict,
}

/// Field validation of one write.
#[derive(Debug, Clone, Default)]
pub struct FieldValidation {
    /// Handling of unknown and duplicate fields.
    pub strictness: Strictness,
    /// Mistakes found by the body parser, such as `duplicate field "spec.x"`.
    pub found: Vec<String>,
    /// Collector for warnings of this write, which the caller sends to the client.
    pub warnings: Warnings,
}

/// Form of a request body, which determines the error message and the handling of null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Body {
    /// Whole object, of a create or update.
    Whole,
    /// Patch, already applied to the stored object.
    Patch,
    /// Apply configuration, already merged into the stored object.
    Apply,
}

/// Known fields of `metadata` (apimachinery `meta/v1 ObjectMeta`).
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Drops unknown fields, with the strictness that the client requested. A field of `old` that only
/// the stored form has keeps its value. A field that only the request's version has is dropped with
/// a warning.
///
/// # Errors
/// 400 (422 for a patch) if metadata, also of an embedded object, has a field of the wrong type, or
/// if strict validation fails.
pub(in crate::engine) fn prune(
    definition: &ResourceDefinition,
    object: &mut Value,
    old: Option<&Value>,
    fields: &FieldValidation,
    body: Body,
) -> Result<(), StatusError> {
    let refused = |why: &str, before: Option<String>| match before {
        None => undecodable(definition, why),
        Some(text) => StatusError::unusable_patch(&text, why),
    };
    let undecoded = malformed(definition, object).or_else(|| {
        let native = definition.native.then(|| native::canonical(definition, object));
        native.and_then(Result::err)
    });
    if let Some(why) = undecoded {
        return Err(refused(&why, (body == Body::Patch).then(|| object.to_string())));
    }
    let before = (fields.strictness == Strictness::Strict && body == Body::Patch)
        .then(|| object.to_string());
    let mut unknown = unknown_metadata(object);
    if let Some(schema) = &definition.schema {
        unknown.extend(match old.filter(|_| definition.other_form().is_some()) {
            Some(old) => schema.prune_beside(object, old),
            None => schema.prune(object),
        });
    }
    unknown.sort();
    let unstored = prune_unstored(definition, object);
    let found = fields.found.iter();
    let told: Vec<&String> = if definition.native {
        unknown.iter().chain(found).collect()
    } else {
        found.chain(&unknown).collect()
    };
    match fields.strictness {
        _ if told.is_empty() => {}
        Strictness::Ignore => {}
        Strictness::Warn => told.into_iter().for_each(|text| fields.warnings.add(text.as_str())),
        Strictness::Strict => {
            let told: Vec<&str> = told.into_iter().take(MAX_WARNINGS).map(String::as_str).collect();
            let why = format!("strict decoding error: {}", told.join(", "));
            return Err(refused(&why, before));
        }
    }
    if fields.strictness != Strictness::Ignore {
        unstored.into_iter().for_each(|text| fields.warnings.add(text));
    }
    Ok(())
}

/// Drops fields that the request's version has and the stored form has not, because the next read
/// would drop them. Returns a warning for each, at most [`MAX_WARNINGS`].
pub(in crate::engine) fn prune_unstored(
    definition: &ResourceDefinition,
    object: &mut Value,
) -> Vec<String> {
    let Some(form) = definition.other_form() else { return Vec::new() };
    let dropped = form.schema().prune(object);
    let version = &definition.storage_version;
    let told = |text: String| format!("{text} in version {version:?}, in which objects are stored");
    dropped.into_iter().take(MAX_WARNINGS).map(told).collect()
}

/// Returns the first error in the metadata for which upstream's decoders would reject the object.
fn malformed(definition: &ResourceDefinition, object: &Value) -> Option<String> {
    let own = object.get("metadata").and_then(schema::metadata_misfit);
    own.or_else(|| {
        let schema = definition.schema.as_ref().filter(|_| !definition.native)?;
        schema.malformed(object).map(|error| error.to_string())
    })
}

fn unknown_metadata(object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    metadata_mut(object).retain(|name, _| {
        let known = METADATA.contains(&name.as_str());
        if !known && unknown.len() < MAX_WARNINGS {
            unknown.push(format!("unknown field \"metadata.{name}\""));
        }
        known
    });
    unknown
}

/// Returns 400 for an object that Go's decoder cannot read, with upstream's message.
pub(crate) fn undecodable(definition: &ResourceDefinition, why: &str) -> StatusError {
    let (kind, version) = (&definition.kind, &definition.version);
    let message = format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}");
    StatusError::new(Reason::BadRequest, message)
}

/// Adds the schema's defaults for omitted fields. A null value counts as omitted, except in an
/// apply, where null sets the field to null.
pub(in crate::engine) fn fill_in(definition: &ResourceDefinition, object: &mut Value, body: Body) {
    match definition.schema.as_ref().filter(|_| !definition.native) {
        Some(schema) if body == Body::Apply => schema.fill_in(object),
        Some(schema) => schema.default(object),
        None => {}
    }
}

/// Converts the object to the stored form by the kind's `prepare` function, if there is one.
pub(in crate::engine) fn prepare(definition: &ResourceDefinition, object: &mut Value) {
    if let Some(prepare) = &definition.prepare {
        prepare(object);
    }
}

/// Returns all mistakes in an object with defaults; mistakes that `old` also has become warnings.
/// The kind's `validate` function runs only if all fields have the right type.
///
/// # Errors
/// 400 for a field of the wrong type in one of Kubernetes' own kinds, which upstream decodes into
/// Go types.
pub(in crate::engine) fn check(
    definition: &ResourceDefinition,
    new: &Value,
    old: Option<&Value>,
    part: Part,
    warnings: &Warnings,
) -> Result<Vec<FieldError>, StatusError> {
    let found = match &definition.schema {
        None => Findings::default(),
        Some(schema) if definition.native => {
            let wrong = schema.validate(new, None);
            match wrong.iter().find_map(|error| mismatch(definition, error)) {
                Some(why) => return Err(undecodable(definition, &why)),
                None => Findings::default(),
            }
        }
        Some(schema) if part == Part::Status => schema.check_status(new, old),
        Some(schema) => schema.check(new, old),
    };
    found.warnings.into_iter().for_each(|text| warnings.add(text));
    let mut errors = found.errors;
    if let Some(scale) = definition.scale.as_ref().filter(|_| !definition.native) {
        if part == Part::Main {
            errors.extend(scale.spec_mistakes(new));
        }
        errors.extend(scale.status_mistakes(new));
    }
    if let Some(validate) = definition.validate.as_ref().filter(|_| errors.is_empty()) {
        errors = validate(new, old);
    }
    if let Some(advise) = definition.advise.as_ref().filter(|_| part == Part::Main)
        && errors.is_empty()
    {
        advise(new, old).into_iter().for_each(|text| warnings.add(text));
    }
    Ok(errors)
}

fn illegal_base64(at: usize) -> String {
    format!("illegal base64 data at input byte {at}")
}

/// Returns the message of Go's JSON decoder for a field of the wrong JSON type; `None` for other
/// mistakes. Formats are checked elsewhere, because their messages would show the value.
fn mismatch(definition: &ResourceDefinition, error: &FieldError) -> Option<String> {
    if error.mistake != Mistake::TypeInvalid {
        return None;
    }
    let given = match error.value.as_ref().and_then(Value::as_str).unwrap_or_default() {
        "integer" => "number",
        "boolean" => "bool",
        other => other,
    };
    let expected = error.detail.split("must be of type ").nth(1).unwrap_or_default();
    let expected = match expected.split(':').next().unwrap_or_default() {
        "integer" => "int32",
        "boolean" => "bool",
        "number" => "float64",
        "array" => "[]",
        "object" => "map",
        "string" => "string",
        "byte" => return bytes::decode(given).err().map(illegal_base64),
        _ => return None,
    };
    let place = native::decoded_field(definition, &error.field);
    Some(format!("json: cannot unmarshal {given} into Go struct field {place} of type {expected}"))
}
