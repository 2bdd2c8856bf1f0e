//! Definition of the kind CustomResourceDefinition.

use std::sync::Arc;

use schema::FieldError;
use serde_json::Value;

use super::{columns, compiled, fields, native};
use crate::definition::{Column, ResourceDefinition, crd};
use crate::object::meta;

pub(super) fn definitions() -> Vec<ResourceDefinition> {
    let short = ["crd", "crds"];
    vec![ResourceDefinition {
        categories: vec!["api-extensions".to_owned()],
        namespaced: false,
        status_subresource: true,
        tracks_generation: true,
        unconditional_update: false,
        defines_kinds: true,
        schema: fields(include_str!("native/customresourcedefinition.json")),
        columns: vec![Column::name(), columns::created_at()],
        prepare: Some(Arc::new(|object: &mut Value| {
            stdx::json::drop_nulls(object);
            crd::complete(object);
        })),
        validate: Some(Arc::new(check)),
        ..native(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            &short,
        )
    }]
}

/// Returns all mistakes in a CustomResourceDefinition whose defaults are filled in.
fn check(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    // A compiled-in definition is not checked: its stored form always replaces the client's
    // content.
    if compiled::manifest(meta(object, "name")).is_some() {
        return Vec::new();
    }
    let errors = match old {
        None => schema::crd::check(object),
        Some(old) => schema::crd::check_update(object, old),
    };
    if !errors.is_empty() {
        return errors;
    }
    match crd::definitions(object) {
        Ok(_) => Vec::new(),
        Err(error) => vec![FieldError::invalid("spec", &Value::Null, stdx::chain(&error))],
    }
}
