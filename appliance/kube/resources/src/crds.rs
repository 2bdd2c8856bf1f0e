//! CustomResourceDefinitions: kinds that clients add, change and delete at run time.
//!
//! The `schema` crate checks a CustomResourceDefinition. The writing transaction sets the
//! conditions (`lifecycle`, `status`). The definition becomes [`crate::ResourceDefinition`]s
//! (`kinds`) before the client gets the response. A finalizer keeps a deleted definition until its
//! objects are gone ([`crate::engine::crd_finalizer`]).

pub(crate) mod kinds;
pub(crate) mod lifecycle;
pub(crate) mod status;

/// Resource name of CustomResourceDefinitions in the store.
pub const RESOURCE: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Maximum number of CustomResourceDefinitions, without the compiled-in kinds. Each definition uses
/// memory for its parsed schema and enlarges every discovery document.
pub const MAX_DEFINITIONS: usize = 256;

pub use schema::crd::CLEANUP_FINALIZER as FINALIZER;
