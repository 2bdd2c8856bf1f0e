//! Images that a person uploads: no server has them, so they are pinned.

use std::sync::Arc;

use artifact_cache::upload::{UploadBody, upload_url};
use artifact_cache::{Checksum, RemoteFile};
use futures_util::{StreamExt as _, stream};
use image_format::Format;
use stdx::Hint;

use super::pins::Pin;
use super::{Images, Inner};

/// Uploaded file, as Workflows and OSImages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedImage {
    /// URL by which Workflows name the file.
    pub url: String,
    /// SHA-256 of the file, as hexadecimal digits.
    pub sha256: String,
    /// Format of the file, by its first bytes.
    pub format: Format,
}

/// Reason why an upload was refused. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The box has no image cache.
    #[error("this box has no image cache")]
    NoCache,
    /// No machine can boot from the file.
    #[error("the file is {0}")]
    Format(&'static str),
    /// The upload ended early.
    #[error("the upload was interrupted: {0}")]
    Cut(String),
    /// The cache refuses the file.
    #[error(transparent)]
    Cache(#[from] Arc<artifact_cache::Error>),
    /// The file could not be pinned.
    #[error("the image cannot be kept: {0}")]
    Pin(String),
}

impl Hint for UploadError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::NoCache => "add [images] to its configuration",
            Self::Format(_) => {
                "upload the image of an installed system, such as a cloud image: raw, qcow2, or \
                 compressed with gzip, xz, zstd, bzip2 or lz4"
            }
            Self::Cut(_) => "repeat the upload",
            Self::Cache(error) => match **error {
                artifact_cache::Error::Checksum { .. } => {
                    "compare the checksum with that of the publisher, and download the file again"
                }
                artifact_cache::Error::CacheFull { .. } => "remove or unpin images",
                _ => return None,
            },
            Self::Pin(_) => "unpin images that are not needed",
        })
    }
}

impl Images {
    /// Stores and pins an uploaded image, and unpins the earlier image of the same name.
    ///
    /// # Errors
    /// The file cannot be an image, is incomplete or has another checksum, or the cache has no
    /// space for it.
    pub async fn upload(
        &self,
        name: &str,
        expected: Option<Checksum>,
        mut body: UploadBody,
    ) -> Result<UploadedImage, UploadError> {
        let inner = self.0.as_ref().ok_or(UploadError::NoCache)?;
        let (mut pieces, mut head) = (Vec::new(), Vec::new());
        while head.len() < image_format::HEAD {
            let Some(piece) = body.next().await.transpose().map_err(UploadError::Cut)? else {
                break;
            };
            head.extend_from_slice(&piece);
            pieces.push(Ok(piece));
        }
        let format = Format::of_disk(&head).map_err(UploadError::Format)?;
        drop(head);
        let url = upload_url(&format!("{name}.{}", format.extension()));
        let remote = RemoteFile { url: url.clone(), checksum: expected };
        let blob = inner.cache.store(&remote, Box::pin(stream::iter(pieces).chain(body))).await?;
        let (own, pin) = (Arc::clone(inner), Pin { digest: Some(blob.digest), url: Some(url) });
        let pinned = tokio::task::spawn_blocking(move || own.pin_upload(pin)).await;
        pinned.unwrap_or_else(|error| Err(error.to_string())).map_err(UploadError::Pin)?;
        // The blob is held until here, so that it was not evicted before it was pinned.
        let sha256 = blob.digest.hex();
        Ok(UploadedImage { url: remote.url, sha256, format })
    }
}

impl Inner {
    /// Replaces the pins of this URL by `pin`.
    fn pin_upload(self: &Arc<Self>, pin: Pin) -> Result<(), String> {
        let is_old = |old: &Pin| old.url == pin.url && old.digest != pin.digest;
        let mut pins = self.pins();
        let done = pins.add(pin.clone()).and_then(|()| pins.drop_if(is_old));
        drop(pins);
        done.map_err(|error| format!("{error:#}"))?;
        self.keep_pins();
        Ok(())
    }
}
