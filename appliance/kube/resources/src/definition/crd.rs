//! Converts a CustomResourceDefinition to the engine's definitions, one for each version.

use schema::crd::{
    CustomResourceDefinition, DefinitionError, PrinterColumn, ScalePaths, Scope, Version,
};
use serde_json::Value;

use super::json_path::{InvalidPath, JsonPath};
use super::{Cell, Column, ColumnType, ResourceDefinition, Scale, StoredForm, preference};

/// Reason why a CustomResourceDefinition cannot be converted to kinds.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A field or a schema is invalid.
    #[error("cannot read the definition")]
    Definition(#[from] DefinitionError),
    /// A printer column's path is outside the supported subset.
    #[error("cannot read a printer column")]
    Path(#[from] InvalidPath),
    /// No version is marked as the storage version.
    #[error("no version has storage: true")]
    NoStorage,
}

/// Fills in the defaults of a definition, and its storage version in `status.storedVersions`.
pub fn complete(crd: &mut Value) {
    schema::crd::default(crd);
    schema::crd::remember_storage_version(crd);
}

/// Returns one definition for each version in `crd`, also for versions that are not served. The
/// defaults of `crd` must be filled in ([`complete`]).
///
/// # Errors
/// Returns an error if `crd` has an invalid field, schema or printer column, or no storage version.
pub fn definitions(crd: &Value) -> Result<Vec<ResourceDefinition>, Unreadable> {
    let parsed = CustomResourceDefinition::parse(crd)?;
    let stored = parsed.storage_version().ok_or(Unreadable::NoStorage)?;
    // The caller sets the revision, because only the caller knows when the definition was stored.
    let form = stored.schema.as_ref().map(|schema| StoredForm::new(schema.clone(), u64::MAX));
    let terminating = crd["metadata"]["deletionTimestamp"].is_string();
    parsed
        .versions
        .iter()
        .map(|version| {
            let definition = definition(&parsed, version, &stored.name)?;
            let stored_form = form.clone();
            Ok(ResourceDefinition { terminating, stored_form, ..definition })
        })
        .collect()
}

fn definition(
    crd: &CustomResourceDefinition,
    version: &Version,
    storage_version: &str,
) -> Result<ResourceDefinition, Unreadable> {
    let names = &crd.names;
    let fields = version.selectable_fields.iter();
    Ok(ResourceDefinition {
        storage_version: storage_version.to_owned(),
        served: version.served,
        deprecated: deprecation(crd, version),
        singular: names.singular.clone(),
        list_kind: names.list_kind.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: crd.scope == Scope::Namespaced,
        status_subresource: version.has_status,
        scale: version.scale.as_ref().map(scale),
        columns: columns(version)?,
        selectable_fields: fields.map(|path| path.trim_start_matches('.').to_owned()).collect(),
        schema: version.schema.clone(),
        ..ResourceDefinition::new(&crd.group, &version.name, &names.kind, &names.plural)
    })
}

fn deprecation(crd: &CustomResourceDefinition, version: &Version) -> Option<String> {
    if !version.deprecated {
        return None;
    }
    let named = |version: &str| format!("{}/{version} {}", crd.group, crd.names.kind);
    let usual = || match successor(crd, &version.name) {
        Some(newer) => format!("{} is deprecated; use {}", named(&version.name), named(newer)),
        None => format!("{} is deprecated", named(&version.name)),
    };
    Some(version.deprecation_warning.clone().unwrap_or_else(usual))
}

/// Returns the version to use instead of the deprecated version `other`: the most preferred version
/// that is served and not deprecated. `None` if `other` is preferred to all such versions.
fn successor<'a>(crd: &'a CustomResourceDefinition, other: &str) -> Option<&'a str> {
    let lasting = crd.versions.iter().filter(|one| one.served && !one.deprecated);
    let best = lasting.map(|one| one.name.as_str()).min_by_key(|name| preference(name))?;
    (preference(best) < preference(other)).then_some(best)
}

fn scale(paths: &ScalePaths) -> Scale {
    Scale {
        spec_replicas: paths.spec_replicas.clone(),
        status_replicas: paths.status_replicas.clone(),
        label_selector: paths.label_selector.clone(),
    }
}

/// Returns the columns of `kubectl get`: the name, then the printer columns (default: the age).
fn columns(version: &Version) -> Result<Vec<Column>, Unreadable> {
    let mut columns = vec![Column::name()];
    if version.columns.is_empty() {
        columns.push(Column::age());
    }
    for printed in &version.columns {
        columns.push(Column {
            name: printed.name.clone(),
            kind: ColumnType::named(&printed.kind).unwrap_or(ColumnType::String),
            format: printed.format.clone(),
            description: described(printed),
            priority: u32::try_from(printed.priority).unwrap_or(0),
            cell: Cell::Path(JsonPath::parse(&printed.json_path)?),
        });
    }
    Ok(columns)
}

/// Returns the description of a column; the default is Kubernetes' sentence with the JSON path.
fn described(column: &PrinterColumn) -> String {
    match column.description.as_str() {
        "" => {
            format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
        }
        text => text.to_owned(),
    }
}
