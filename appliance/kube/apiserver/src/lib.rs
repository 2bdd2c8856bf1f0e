//! The Kubernetes-compatible API: kubectl, controllers and GitOps tools read and write the box's
//! objects here as they would in a cluster.
//!
//! Never: knows a kind by name outside `builtin`, reads a wall clock of its own, stores a
//! resourceVersion, shows an object to who is not known, logs a token or a body.
//!
//! Enter at [`router`] (a request's way: `gate` → `facade` → [`Engine`]) and at [`Engine`], which
//! the box's own controllers call directly. Kinds are [`ResourceDefinition`]s; ours are in
//! [`builtin`].
//!
//! Not served yet: protobuf answers (bodies are read), conversion between versions by webhook,
//! admission webhooks.

pub mod auth;
mod budget;
pub mod builtin;
pub mod crds;
pub mod definition;
pub mod engine;
mod facade;
mod gate;
#[cfg(test)]
mod hostile;
mod json_path;
mod openapi;
mod reviews;
pub mod roles;
mod selector;
mod serve;
mod served;
mod status_error;
mod table;

pub use auth::{
    AdminAccess, AdminTokens, Authenticator, Error, Pki, ServiceAccountTokens, SigningKey,
    TokenError, TokenInfo,
};
pub use budget::ByteLimits;
pub use definition::{Registry, ResourceDefinition};
pub use engine::{
    Admission, Collector, DeleteOptions, Deleted, Engine, EventKind, FieldValidation,
    InitialEvents, ListOptions, ObjectList, ObjectWatch, Part, Patch, Propagation, RevisionMatch,
    Strictness, Warnings, WatchEvent, WatchOptions, WriteOptions,
};
pub use facade::{Decoded, router};
pub use gate::{ANSWERS, AuditLog, BODIES, Gate, Peer, READS, WATCHES, WRITES};
pub use json_path::JsonPath;
pub use rbac::User;
pub use schema::{FieldError, Mistake};
pub use selector::{FieldSelector, LabelSelector};
pub use serve::{STRANGERS, serve};
pub use status_error::{Cause, Details, Reason, StatusError};
