//! The Kubernetes-compatible API: kubectl, controllers and GitOps tools read and write the box's
//! objects here as they would in a cluster.
//!
//! Never: knows a kind by name outside `builtin`, reads a wall clock of its own, stores a
//! resourceVersion, lets a request in without a known token, logs a token or a body.
//!
//! Enter at [`router`] (a request's way: `auth` → `facade` → [`Engine`]) and at [`Engine`], which
//! the box's own controllers call directly. Kinds are [`ResourceDefinition`]s; ours are in
//! [`builtin`].
//!
//! Not served yet: OpenAPI (so `kubectl create`, `apply` and `edit` need `--validate=false`),
//! defaulting by schema, refusing or pruning of fields that a kind does not know, protobuf and YAML
//! bodies, strategic merge and server-side apply, garbage collection by owner, RBAC (every known
//! token is an administrator), CRDs.

pub mod auth;
pub mod builtin;
pub mod definition;
pub mod engine;
mod facade;
mod field_error;
#[cfg(test)]
mod hostile;
mod json_path;
mod selector;
mod serve;
mod status_error;
mod table;

pub use auth::{AdminAccess, Authenticator, Error, Pki, User};
pub use definition::{Registry, ResourceDefinition};
pub use engine::{
    DeleteOptions, Deleted, Engine, EventKind, ListOptions, ObjectList, ObjectWatch, Part, Patch,
    RevisionMatch, WatchEvent, WatchOptions, WriteOptions,
};
pub use facade::router;
pub use field_error::{FieldError, Mistake};
pub use json_path::JsonPath;
pub use selector::{FieldSelector, LabelSelector};
pub use serve::serve;
pub use status_error::{Cause, Details, Reason, StatusError};
