//! OSImages of uploaded files: the file goes into the cache of images, then an OSImage names it.
//!
//! Never: keeps a part of a refused upload, or stores a file without the right to its OSImage.
//!
//! Enter at [`OsImageUploads`]; [`router`] is its route in the API.

mod handlers;

use std::future::Future;
use std::pin::Pin;
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

pub use handlers::router;

/// Future of a method of [`ImageFiles`]; boxed, so that the trait is object-safe.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Cache of images that stores uploaded files.
pub trait ImageFiles: Send + Sync {
    /// Returns false if the box has no image cache.
    fn is_present(&self) -> bool;

    /// Stores and pins an uploaded image, and unpins the earlier image of the same name.
    fn upload<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Checksum>,
        body: UploadBody,
    ) -> Pending<'a, Result<UploadedImage, UploadError>>;

    /// Carries out an operation on an image. Returns a message; the error is a phrase.
    fn request(&self, request: ImageRequest) -> Pending<'_, Result<String, String>>;
}

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
    images: Arc<dyn ImageFiles>,
    catalog: ImageCatalog,
}

impl OsImageUploads {
    /// Creates the writer of the files in `images` and the OSImages in `objects`.
    pub fn new(images: Arc<dyn ImageFiles>, objects: Arc<dyn Objects>) -> Self {
        Self { images, catalog: ImageCatalog::new(objects) }
    }

    /// Checks that [`Self::store`] would not refuse the image, before a large upload.
    ///
    /// # Errors
    /// The box has no image cache, or another OSImage has the name.
    pub async fn check(&self, image: &CheckedImage) -> Result<(), OsImageError> {
        if !self.images.is_present() {
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
