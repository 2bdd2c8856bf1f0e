//! Definitions of the compiled-in kinds. A new kind needs only a definition or a manifest here:
//! engine, paths and discovery documents are made from the definitions.
//!
//! Kubernetes' own kinds are written in code, with their fields in `native/`. Custom kinds are
//! CustomResourceDefinitions in `manifests/`, read in the same way as a definition from a client.
//! Names, fields, validations, defaults, CEL rules and columns are upstream's: Tinkerbell v0.25
//! (v1alpha1), CAPT v0.7 (v1beta1), Kubernetes 1.35. Cluster API kinds declare only the fields that
//! users set; all other fields are stored unchecked.

mod advice;
mod columns;
pub(crate) mod compiled;
mod conformance;
mod core;
mod custom;
mod events;
mod extensions;
mod rbac;
mod rules;
mod typed;
pub mod typed_secret;

use std::sync::Arc;

use schema::Schema;
use serde_json::{Value, json};

use crate::definition::{Column, Duplicate, Registry, ResourceDefinition};

/// Maximum events per namespace. If a new event exceeds the limit, the object with the most events
/// loses its oldest event.
pub const MAX_EVENTS: usize = 1000;

/// Returns the registry of every compiled-in kind.
///
/// Returns an error if two definitions have the same resource or kind, which a test excludes.
pub fn registry() -> Result<Registry, Duplicate> {
    Registry::new(definitions())
}

/// Returns the registry of every compiled-in kind and of the kinds that conformance test suites
/// create as plain objects: pods, deployments and similar kinds, on which no controller acts. Not
/// for production.
///
/// # Errors
/// Returns an error if two definitions have the same resource or kind, which a test excludes.
#[doc(hidden)]
pub fn conformance() -> Result<Registry, Duplicate> {
    let mut all = definitions();
    all.extend(conformance::definitions());
    Registry::new(all)
}

/// Returns the objects that every namespace gets, each with its resource: the ServiceAccount
/// `default`, and the ConfigMap `kube-root-ca.crt` with the box's CA certificate.
pub fn furniture(ca_pem: &str) -> Vec<(String, Value)> {
    let about = "The certificate authority of this box's API.";
    let authority = json!({
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": { "kubernetes.io/description": about },
        },
        "data": { "ca.crt": ca_pem },
    });
    let account = json!({ "metadata": { "name": "default" } });
    vec![("/configmaps".to_owned(), authority), ("/serviceaccounts".to_owned(), account)]
}

fn definitions() -> Vec<ResourceDefinition> {
    let mut all = natives();
    all.extend(custom::definitions());
    all
}

/// Returns the definitions of Kubernetes' own kinds (core, events, RBAC, extensions).
pub(crate) fn natives() -> Vec<ResourceDefinition> {
    let mut all = core::definitions();
    all.extend(events::definitions());
    all.extend(rbac::definitions());
    all.extend(extensions::definitions());
    all
}

/// Returns a definition with the defaults of Kubernetes' own kinds: no `metadata.generation`, and
/// PUT may omit the resourceVersion.
fn native(group: &str, kind: &str, plural: &str, short: &[&str]) -> ResourceDefinition {
    ResourceDefinition {
        short_names: short.iter().map(|one| (*one).to_owned()).collect(),
        tracks_generation: false,
        native: true,
        unconditional_update: true,
        columns: vec![Column::name(), columns::age()],
        prepare: Some(Arc::new(stdx::json::drop_nulls)),
        ..ResourceDefinition::new(group, "v1", kind, plural)
    }
}

/// Parses the schema of a kind from the JSON text of a file in `native/`.
fn fields(text: &str) -> Option<Arc<Schema>> {
    let source: Value = serde_json::from_str(text).expect("a test reads every file of this crate");
    let schema = Schema::parse(&source).expect("a test reads every file of this crate");
    Some(Arc::new(schema))
}

#[cfg(test)]
mod tests;
