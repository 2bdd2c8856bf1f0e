//! OSImages of uploaded files: the file goes into the cache, then an OSImage names it.

mod handlers;

use std::sync::Arc;

use api::os_image::ImageFormat;
use artifact_cache::Checksum;
use artifact_cache::upload::UploadBody;
use image_catalog::{CatalogError, CheckedImage, ImageCatalog};
use image_format::Format;
use objects::Objects;
use serde_json::Value;
use status::image::{ImageOperation, ImageRequest};
use stdx::Hint;

use super::{Images, UploadError};

pub use handlers::router;

/// Reason why an upload made no OSImage.
#[derive(Debug, thiserror::Error)]
pub enum OsImageError {
    /// The file was refused.
    #[error(transparent)]
    File(#[from] UploadError),
    /// The OSImage was refused.
    #[error(transparent)]
    Object(#[from] CatalogError),
}

impl Hint for OsImageError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::File(error) => error.hint(),
            Self::Object(error) => error.hint(),
        }
    }
}

/// Writer of uploaded images, for the pages and the API.
#[derive(Clone)]
pub struct OsImageUploads {
    images: Images,
    catalog: ImageCatalog,
}

impl OsImageUploads {
    /// Creates the writer of the files in `images` and the OSImages in `objects`.
    pub fn new(images: Images, objects: Arc<dyn Objects>) -> Self {
        Self { images, catalog: ImageCatalog::new(objects) }
    }

    /// Checks that [`Self::store`] would not refuse the image, before a large upload.
    ///
    /// # Errors
    /// The box has no image cache, or another OSImage has the name.
    pub async fn check(&self, image: &CheckedImage) -> Result<(), OsImageError> {
        if self.images.0.is_none() {
            return Err(UploadError::NoCache.into());
        }
        Ok(self.catalog.check_name(image).await?)
    }

    /// Stores an uploaded file in the cache, and creates its OSImage, or replaces the OSImage of an
    /// earlier upload. Returns the OSImage.
    ///
    /// # Errors
    /// The file or the OSImage is refused. Nothing of the upload is kept.
    pub async fn store(
        &self,
        image: CheckedImage,
        body: UploadBody,
    ) -> Result<Value, OsImageError> {
        let stored = self.images.upload(&image.name, expected(&image), body).await?;
        let format = match stored.format {
            Format::Qcow2 => ImageFormat::Qcow2,
            // The agent detects the compression.
            _ => ImageFormat::Raw,
        };
        let image = image.with_sha256(&stored.sha256);
        match self.catalog.save(&image, &stored.url, format).await {
            Ok(object) => Ok(object),
            Err(error) => {
                self.release(stored.url).await;
                Err(error.into())
            }
        }
    }

    /// Unpins a file that no OSImage names.
    async fn release(&self, url: String) {
        let named = self.catalog.list().await;
        if named.is_ok_and(|named| named.iter().all(|it| it.url != url)) {
            let request = ImageRequest { image: url, act: ImageOperation::Unpin };
            if let Err(why) = self.images.request(request).await {
                tracing::warn!(why, "an uploaded file without an OSImage stays pinned");
            }
        }
    }
}

/// Returns the checksum that the file must have; `None` if it is not known.
fn expected(image: &CheckedImage) -> Option<Checksum> {
    let sums = image.checksum.as_ref()?;
    let digits = sums.sha256.as_ref().or(sums.sha512.as_ref())?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests;
