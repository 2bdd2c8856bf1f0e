//! The kind of the objects that define kinds: CustomResourceDefinition.

use std::sync::Arc;

use serde_json::Value;

use super::{columns, fields, native};
use crate::crds::lifecycle;
use crate::definition::{Column, ResourceDefinition};

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
        prepare: Some(Arc::new(|crd: &mut Value| {
            stdx::json::drop_nulls(crd);
            lifecycle::complete(crd);
        })),
        validate: Some(Arc::new(lifecycle::check)),
        ..native(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            &short,
        )
    }]
}
