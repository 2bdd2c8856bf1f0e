//! Manifests of a registry, and the trait through which the mirror requests them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

use super::Reference;
use crate::{Digest, Refusal};

/// Maximum size of a manifest in bytes (OCI distribution specification).
pub(crate) const MANIFEST_BYTES: usize = 4 << 20;

/// Manifest or index, as stored in its registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Content, byte for byte as in the registry; determines the digest.
    pub bytes: Bytes,
    /// Media type from the registry's response.
    pub media_type: String,
}

impl Document {
    /// Returns the SHA-256 of the bytes.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({}, {})", self.media_type, self.digest())
    }
}

pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = Result<Document, Refusal>> + Send + 'a>>;

/// Source of manifests, such as a registry client.
pub trait Manifests: Send + Sync + 'static {
    /// Requests the manifest or index at a reference. If the reference has a digest, the content is
    /// checked against it.
    fn manifest<'a>(&'a self, reference: &'a Reference) -> Answer<'a>;
}
