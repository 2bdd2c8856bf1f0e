//! From what a client sent to what is stored, as the kind's schema says: unknown fields are told
//! and dropped, defaults filled in, the whole checked.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::{metadata_mut, native};
use crate::definition::ResourceDefinition;
use crate::engine::Part;
use crate::status_error::{Reason, StatusError};
use schema::{FieldError, Findings, Mistake};

/// Warnings one answer carries; a body of a million unknown fields is not worth a longer one.
pub const MAX_WARNINGS: usize = 64;

/// What happens to a write with fields its kind does not know, or with a field given twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strictness {
    /// They are dropped.
    #[default]
    Ignore,
    /// They are dropped, and the client is told.
    Warn,
    /// The write is refused.
    Strict,
}

/// Things to tell the client beside the answer; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds a warning, unless it is there already or there are too many.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_WARNINGS && !all.contains(&text) {
            all.push(text);
        }
    }

    /// Everything there is to tell.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How the fields of a write are looked at.
#[derive(Debug, Clone, Default)]
pub struct FieldValidation {
    /// What happens to those that are not as they should be.
    pub strictness: Strictness,
    /// What was found when the body was read: `duplicate field "spec.x"`.
    pub found: Vec<String>,
    /// Where warnings go.
    pub warnings: Warnings,
}

/// How a body came, for the words of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Body {
    /// As a whole object.
    Whole,
    /// As a patch, which was applied.
    Patch,
    /// As a configuration, which was merged.
    Apply,
}

/// The fields of `metadata` (apimachinery `meta/v1 ObjectMeta`).
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

/// Drops what the kind does not know, and treats it as the client asked. What only the stored form
/// of `old` knows, and not the version of the request, stays as it was there; what only the version
/// of the request knows is not stored, and the client is warned.
///
/// # Errors
/// 400 (422 for a patch) when metadata has a field of the wrong type, the object's own or that of
/// an object inside it, or when the client asked for strictness.
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

/// Drops fields that the version of the request knows and the stored one does not: they would be
/// gone when the object is read again. Returns a warning for each.
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

/// What in metadata no decoder of upstream's could read.
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

/// 400 in the words of a decoder.
pub(crate) fn undecodable(definition: &ResourceDefinition, why: &str) -> StatusError {
    let (kind, version) = (&definition.kind, &definition.version);
    let message = format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}");
    StatusError::new(Reason::BadRequest, message)
}

/// Fills in what the client left out, by the schema. What it gave as null counts as left out,
/// unless it was applied: there a null says that the field is to be null.
pub(in crate::engine) fn fill_in(definition: &ResourceDefinition, object: &mut Value, body: Body) {
    match definition.schema.as_ref().filter(|_| !definition.native) {
        Some(schema) if body == Body::Apply => schema.fill_in(object),
        Some(schema) => schema.default(object),
        None => {}
    }
}

/// Brings an object that is otherwise complete to the form its kind is stored in.
pub(in crate::engine) fn prepare(definition: &ResourceDefinition, object: &mut Value) {
    if let Some(prepare) = &definition.prepare {
        prepare(object);
    }
}

/// Everything that is wrong with a completed object; what was wrong before as well is a warning.
/// The kind's own rules look at objects whose fields are of the right type only.
///
/// # Errors
/// 400 for a field of the wrong type in one of Kubernetes' own kinds, which are decoded as types.
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

/// The mistake in the words of Go's JSON decoder, where a field is of another JSON type than its
/// kind says. Formats are checked elsewhere: a message about one would show the value.
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
        "byte" => return super::bytes::decode(given).err().map(illegal_base64),
        _ => return None,
    };
    let place = native::decoded_field(definition, &error.field);
    Some(format!("json: cannot unmarshal {given} into Go struct field {place} of type {expected}"))
}
