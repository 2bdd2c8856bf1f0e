//! Validation of a value against its type (structured-merge-diff, `typed/validate.go`).

use std::collections::BTreeSet;

use serde_json::{Map as Object, Value};

use super::{Mismatches, item};
use crate::path::PathElement;
use crate::schema::{List, Map, Part, Scalar, Schema, TypeId};

/// Returns all mismatches between `value` and its type. `duplicates` allows duplicate list items.
pub(super) fn validate(schema: &Schema, of: TypeId, value: &Value, duplicates: bool) -> Mismatches {
    Validator { schema, duplicates }.visit(of, value)
}

/// Returns the mismatches between `value` and a scalar type; null matches every type.
pub(super) fn scalar(kind: Scalar, value: Option<&Value>, side: &str) -> Mismatches {
    let value = match value {
        None | Some(Value::Null) => return Mismatches::none(),
        Some(value) => value,
    };
    let fits = match kind {
        Scalar::Numeric => value.is_number(),
        Scalar::String => value.is_string(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::Untyped => value.is_number() || value.is_string() || value.is_boolean(),
    };
    if fits {
        return Mismatches::none();
    }
    Mismatches::one(match kind {
        Scalar::Numeric => {
            format!("{side}expected numeric (int or float), got {}", go_text::type_name(value))
        }
        Scalar::String => format!(
            "{side}expected string, got &value.valueUnstructured{{Value:{}}}",
            go_text::literal(value)
        ),
        Scalar::Boolean => format!("{side}expected boolean, got &{{{}}}", go_text::plain(value)),
        Scalar::Untyped => {
            format!("{side}expected any scalar, got &{{{}}}", go_text::plain(value))
        }
    })
}

pub(super) fn no_part() -> Mismatches {
    Mismatches::one("schema error: invalid atom: inlined")
}

struct Validator<'s> {
    schema: &'s Schema,
    duplicates: bool,
}

impl Validator<'_> {
    fn visit(&self, of: TypeId, value: &Value) -> Mismatches {
        match self.schema.atom(of).part_for(Some(value)) {
            Part::Scalar(kind) => scalar(kind, Some(value), ""),
            Part::List(list) => match value {
                Value::Null => Mismatches::none(),
                Value::Array(items) => self.list(list, items),
                other => {
                    Mismatches::one(format!("expected list, got &{{{}}}", go_text::plain(other)))
                }
            },
            Part::Map(map) => match value {
                Value::Null => Mismatches::none(),
                Value::Object(fields) => self.map(map, fields),
                other => {
                    Mismatches::one(format!("expected map, got &{{{}}}", go_text::plain(other)))
                }
            },
            Part::Nothing => no_part(),
        }
    }

    fn list(&self, list: &List, items: &[Value]) -> Mismatches {
        let mut mismatches = Mismatches::none();
        let mut seen = BTreeSet::new();
        for (at, one) in items.iter().enumerate() {
            let place = if list.atomic {
                format!("[{at}]")
            } else {
                let element = match item::element(self.schema, list, one) {
                    Ok(element) => element,
                    Err(why) => {
                        mismatches.append(Mismatches::one(format!("element {at}: {why}")));
                        return mismatches;
                    }
                };
                let place = element.to_string();
                if !seen.insert(element) && !self.duplicates {
                    let message = format!("duplicate entries for key {place}");
                    mismatches.append(Mismatches::one(message));
                }
                place
            };
            mismatches.append(self.visit(list.element, one).below(|| place.clone()));
        }
        mismatches
    }

    fn map(&self, map: &Map, fields: &Object<String, Value>) -> Mismatches {
        let mut mismatches = Mismatches::none();
        for (name, value) in fields {
            let place = || PathElement::field(name).to_string();
            let Some(of) = map.field(name) else {
                // One undeclared field hides the rest, because the object is probably of another
                // kind.
                mismatches.append(Mismatches::one("field not declared in schema").below(place));
                break;
            };
            mismatches.append(self.visit(of, value).below(place));
        }
        mismatches
    }
}
