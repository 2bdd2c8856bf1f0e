//! The compiled-in kinds, as data. Adding one is adding a definition or a manifest here; the
//! engine, the paths and the documents of discovery follow.
//!
//! Kubernetes' own kinds are written in code with their fields in `native/`; custom ones are
//! CustomResourceDefinitions in `manifests/`, read as one that a client brings. Names, fields,
//! validations, defaults, CEL rules and columns are upstream's: of Tinkerbell v0.25 (v1alpha1), of
//! CAPT v0.7 (v1beta1), of Kubernetes 1.35. Of Cluster API there is as much as its objects need to
//! be kept here: the fields people name, everything else as it comes.

mod advice;
mod columns;
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

/// Events kept per namespace; of the object that has most the oldest gives way.
pub const MAX_EVENTS: usize = 1000;

pub(crate) use custom::manifests;

/// The registry of every compiled-in kind.
///
/// # Errors
/// Never, unless two definitions collide; a test holds that.
pub fn registry() -> Result<Registry, Duplicate> {
    Registry::new(definitions())
}

/// The registry of every compiled-in kind, and of the kinds that suites of tests create as plain
/// objects: pods, deployments and the like, which nothing acts upon. Not for production.
///
/// # Errors
/// Never, unless two definitions collide; a test holds that.
#[doc(hidden)]
pub fn conformance() -> Result<Registry, Duplicate> {
    let mut all = definitions();
    all.extend(conformance::definitions());
    Registry::new(all)
}

/// What is in every namespace, each object with its resource: the account of programs that ask for
/// none, and the certificate by which they know the box.
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

/// Kubernetes' own kinds.
pub(crate) fn natives() -> Vec<ResourceDefinition> {
    let mut all = core::definitions();
    all.extend(events::definitions());
    all.extend(rbac::definitions());
    all.extend(extensions::definitions());
    all
}

/// What Kubernetes' own kinds have in common: no generation, and PUT without a resourceVersion.
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

/// The fields of a kind, from a file of this crate.
fn fields(text: &str) -> Option<Arc<Schema>> {
    let source: Value = serde_json::from_str(text).expect("a test reads every file of this crate");
    let schema = Schema::parse(&source).expect("a test reads every file of this crate");
    Some(Arc::new(schema))
}

#[cfg(test)]
mod tests;
