//! Kubernetes resources without HTTP: kinds, the rules of reading and writing their objects, and
//! their storage, watches, printing and garbage collection.
//!
//! Never: handles HTTP or a user's credentials, names a kind outside [`builtin`], reads a wall
//! clock of its own, stores a resourceVersion.
//!
//! Enter at [`Engine`], which `apiserver` and the box's own controllers both call. Kinds are
//! [`ResourceDefinition`]s; the compiled-in ones are in [`builtin`], those of clients in [`crds`].

pub mod builtin;
pub mod crds;
pub mod definition;
pub mod engine;
pub mod object;
pub mod reviews;
pub mod roles;
mod selector;
pub mod served;
mod status_error;
pub mod table;

pub use definition::{JsonPath, Registry, ResourceDefinition};
pub use engine::{
    Admission, Collector, DeleteOptions, Deleted, Engine, EventKind, FieldValidation,
    InitialEvents, ListOptions, ObjectList, ObjectWatch, Part, Patch, Propagation, RevisionMatch,
    Strictness, Warnings, WatchEvent, WatchOptions, WriteOptions,
};
pub use schema::{FieldError, Mistake};
pub use selector::{FieldSelector, LabelSelector};
pub use status_error::{Cause, Details, Reason, StatusError};
