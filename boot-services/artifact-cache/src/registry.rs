//! Disk images in OCI registries, in the form of upstream's `oci2disk`: an artifact whose only
//! layer is the file (OCI distribution specification 1.1, "Pulling manifests" and "Pulling blobs";
//! image specification, "Image Manifest").
//!
//! The layer is checked against its digest after the download.

pub(crate) mod challenge;
mod credentials;
pub(crate) mod document;
mod manifest_store;
mod mirror;

use oci_reference::Digest;
pub use oci_reference::{Manifest, Reference};
use serde::Deserialize;

pub use challenge::Challenge;
pub use credentials::Credentials;
pub use document::{Document, Manifests};
pub use mirror::Mirror;

/// URL scheme of a file in a registry; a [`Reference`] follows.
pub const SCHEME: &str = "oci://";
/// Media type of the layer that has the disk image, if there are several layers.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// URL scheme of a blob; a [`Reference`] with the blob's digest follows.
pub(super) const BLOB_SCHEME: &str = "oci-blob://";
/// Fields of a manifest that locate the disk image.
#[derive(Deserialize)]
struct Artifact {
    #[serde(default)]
    layers: Vec<Layer>,
    #[serde(default)]
    manifests: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
}

/// Returns the digest and the size in bytes of the file in an artifact: its only layer, or the
/// first layer with the media type of upstream's `oci2disk`.
///
/// # Errors
/// No layer is the file; the text is the reason, as a sentence.
pub fn file_of(manifest: &[u8]) -> Result<(Digest, u64), String> {
    let document: Artifact = serde_json::from_slice(manifest)
        .map_err(|error| format!("its manifest is not valid: {error}"))?;
    let count = document.layers.len();
    let chosen = match document.layers.as_slice() {
        [] if !document.manifests.is_empty() => {
            let many = document.manifests.len();
            return Err(format!("it is an index of {many} manifests: select one by its digest"));
        }
        [only] => Some(only),
        layers => layers.iter().find(|layer| layer.media_type == LAYER),
    };
    let layer = chosen
        .ok_or_else(|| format!("none of its {count} layers is a disk image of type {LAYER}"))?;
    let digest = Digest::parse(&layer.digest)
        .ok_or_else(|| format!("its layer's digest {:?} is not SHA-256", layer.digest))?;
    Ok((digest, layer.size))
}

#[cfg(test)]
mod tests;
