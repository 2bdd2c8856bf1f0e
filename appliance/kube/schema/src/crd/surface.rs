//! Checks of the served parts of a version: schema, subresources, columns, selectable fields.

use serde_json::{Map, Value, json};

use super::MAX_SELECTABLE_FIELDS;
use super::check::{check_columns, text};
use super::column::check_path;
use crate::admission;
use crate::field_error::FieldError;
use crate::field_path;
use crate::schema::Schema;

/// Keywords that a root schema with a status subresource must not have, because an update of only
/// the status would not check them.
const NOT_AT_ROOT: [&str; 20] = [
    "id",
    "$schema",
    "$ref",
    "nullable",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-map-type",
];

const ALLOWED_AT_ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum \
     ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf \
     Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

/// Parts that are equal in all versions. Upstream reports their mistakes only once.
pub(super) struct Shared<'a> {
    pub schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
    /// True for each of [`PARTS`] that is equal in all versions, or absent in all.
    same: [bool; 4],
    any_status: bool,
}

const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

fn part<'a>(version: &'a Value, name: &str) -> Option<&'a Value> {
    version.get(name).filter(|value| !value.is_null() && **value != json!([]))
}

impl<'a> Shared<'a> {
    pub fn of(versions: &'a [Value]) -> Self {
        let first = |name: &str| versions.first().and_then(|version| part(version, name));
        let same = PARTS.map(|name| versions.iter().all(|one| part(one, name) == first(name)));
        let shared = |index: usize| if same[index] { first(PARTS[index]) } else { None };
        Self {
            schema: shared(0),
            subresources: shared(1),
            columns: shared(2),
            selectable: shared(3),
            same,
            any_status: versions.iter().any(|one| has_status(part(one, "subresources"))),
        }
    }

    /// Checks the shared parts; their paths begin at the spec.
    pub fn check(&self, spec: &str, errors: &mut Vec<FieldError>) {
        let place = format!("{spec}.validation");
        check_schema(self.schema, self.any_status, &place, errors);
        check_subresources(self.subresources, &format!("{spec}.subresources"), errors);
        if let Some(columns) = self.columns {
            check_columns(columns, &format!("{spec}.additionalPrinterColumns"), errors);
        }
        if let Some(fields) = self.selectable {
            let place = format!("{spec}.selectableFields");
            match self.schema {
                Some(schema) => check_selectable(fields, Some(schema), &place, errors),
                None => {
                    let detail = "may only be set when validations.schema is included";
                    errors.push(FieldError::invalid(place, &json!(""), detail));
                }
            }
        }
    }
}

fn has_status(subresources: Option<&Value>) -> bool {
    subresources.and_then(|all| all.get("status")).is_some_and(|status| !status.is_null())
}

/// Checks the parts of this version that are not shared.
pub(super) fn check_surface(
    version: &Value,
    shared: &Shared<'_>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let own = |index: usize| if shared.same[index] { None } else { part(version, PARTS[index]) };
    let subresources = if shared.same[1] { shared.subresources } else { own(1) };
    check_schema(own(0), has_status(subresources), &format!("{path}.schema"), errors);
    check_subresources(own(1), &format!("{path}.subresources"), errors);
    if let Some(columns) = own(2) {
        check_columns(columns, &format!("{path}.additionalPrinterColumns"), errors);
    }
    if let Some(fields) = own(3) {
        let place = format!("{path}.selectableFields");
        match own(0) {
            Some(schema) => check_selectable(fields, Some(schema), &place, errors),
            None => {
                let detail =
                    "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(FieldError::invalid(place, &json!(""), detail));
            }
        }
    }
}

fn check_schema(
    schema: Option<&Value>,
    has_status: bool,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(source) = schema.and_then(|schema| schema.get("openAPIV3Schema")) else { return };
    let place = format!("{path}.openAPIV3Schema");
    if has_status {
        check_root_for_status(source, &place, errors);
    }
    if source.get("nullable") == Some(&json!(true)) {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(format!("{place}.nullable"), detail));
    }
    errors.extend(admission::check_structural(source, &place));
}

fn check_root_for_status(source: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let kind = text(source, "/type");
    if !kind.is_empty() && kind != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                      status subresource is enabled";
        errors.push(FieldError::invalid(format!("{place}.type"), &kind.into(), detail));
        return;
    }
    let empty = Map::new();
    let map = source.as_object().unwrap_or(&empty);
    let is_zero = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    if NOT_AT_ROOT.iter().any(|name| map.get(*name).is_some_and(|value| !is_zero(value))) {
        let detail = format!(
            "only {ALLOWED_AT_ROOT} fields are allowed at the root of the schema if the status \
             subresource is enabled"
        );
        errors.push(FieldError::invalid(place, source, detail));
    }
}

fn check_subresources(subresources: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let scale = subresources.and_then(|all| all.get("scale")).filter(|scale| !scale.is_null());
    let Some(scale) = scale else { return };
    for (name, below, what) in [
        ("specReplicasPath", vec![".spec."], ".spec"),
        ("statusReplicasPath", vec![".status."], ".status"),
        ("labelSelectorPath", vec![".spec.", ".status."], "either .spec or .status"),
    ] {
        let value = text(scale, &format!("/{name}"));
        let place = format!("{path}.scale.{name}");
        if value.is_empty() {
            if name != "labelSelectorPath" {
                errors.push(FieldError::required(place, ""));
            }
        } else if check_path(value, &place, errors)
            && !below.iter().any(|prefix| value.starts_with(prefix))
        {
            let detail = format!("should be a json path under {what}");
            errors.push(FieldError::invalid(place, &value.into(), detail));
        }
    }
}

fn check_selectable(
    fields: &Value,
    schema: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let source = schema.and_then(|schema| schema.get("openAPIV3Schema"));
    // The check of the schema reports a schema that cannot be parsed.
    let Some(schema) = source.and_then(|source| Schema::parse(source).ok()) else { return };
    let mut seen: Vec<String> = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let json_path = text(field, "/jsonPath");
        let place = format!("{path}[{index}].jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        let mut refuse = |detail: String| {
            errors.push(FieldError::invalid(&place, &json_path.into(), detail));
        };
        let resolved = match field_path::resolve(json_path, schema.root(), false) {
            Ok(resolved) => resolved,
            Err(error) => {
                refuse(format!("is an invalid path: {error}"));
                continue;
            }
        };
        if resolved.first == "metadata" {
            refuse("must not point to fields in metadata".to_owned());
        }
        let kind = resolved.node.map_or("", |node| node.kind());
        if !matches!(kind, "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            refuse(detail.to_owned());
        }
        if seen.contains(&resolved.path) {
            errors.push(FieldError::duplicate(place, &json_path.into()));
        } else {
            seen.push(resolved.path);
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        let limit = i64::try_from(MAX_SELECTABLE_FIELDS).unwrap_or(i64::MAX);
        errors.push(FieldError::too_many(path, seen.len(), limit));
    }
}
