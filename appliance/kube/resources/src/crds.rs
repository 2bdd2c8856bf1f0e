//! CustomResourceDefinitions: kinds that come, change and go while the box serves, and the
//! compiled-in kinds as objects of the same form.
//!
//! An object of kind CustomResourceDefinition is checked by the `schema` crate, gets its conditions
//! in the transaction that writes it (`lifecycle`, `status`), and becomes
//! [`crate::ResourceDefinition`]s (`read`, `kinds`) before the writer has its answer. One that is
//! deleted waits, marked by a finalizer, until its objects are gone ([`cleanup`]).

pub mod cleanup;
pub(crate) mod compiled;
pub(crate) mod kinds;
pub(crate) mod lifecycle;
pub(crate) mod read;
pub(crate) mod status;

/// The store key of the definitions.
pub const RESOURCE: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Definitions there may be, the compiled-in ones not counted. Each costs memory for its parsed
/// schema and a part of every discovery document.
pub const MAX_DEFINITIONS: usize = 256;

pub use schema::crd::CLEANUP_FINALIZER as FINALIZER;
