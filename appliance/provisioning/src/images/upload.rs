//! Images that a person uploads: no server has them, so they are pinned.

use std::sync::Arc;

use artifact_cache::upload::{UploadBody, upload_url};
use artifact_cache::{Checksum, RemoteFile};
use futures_util::{StreamExt as _, stream};
use image_format::Format;
use image_uploads::{ImageFiles, Pending, UploadError, UploadedImage};
use status::image::ImageRequest;

use super::pins::Pin;
use super::{Images, Inner};

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

impl ImageFiles for Images {
    fn is_present(&self) -> bool {
        self.0.is_some()
    }

    fn upload<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Checksum>,
        body: UploadBody,
    ) -> Pending<'a, Result<UploadedImage, UploadError>> {
        Box::pin(Images::upload(self, name, expected, body))
    }

    fn request(&self, request: ImageRequest) -> Pending<'_, Result<String, String>> {
        Box::pin(Images::request(self, request))
    }
}
