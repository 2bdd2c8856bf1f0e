//! Pulls an image from the box's registry: loads manifest and configuration, and unpacks the
//! layers.

use std::fs::File;
use std::sync::Arc;

use imaging::Meter;
use imaging::stream::{Archive, Checksum, Url, read_archive, read_document};
use unpack::{UnpackError, UnpackSummary, unpack_layer};

use super::Container;
use super::config::CONFIG_BYTES;
use super::manifest::{MANIFEST_BYTES, Manifest, Part};
use super::reference::read_digest;
use crate::Error;

/// Configuration of an image, and descriptors of its layers, which are not fetched yet.
pub(super) struct Image {
    pub(super) config: Vec<u8>,
    pub(super) layers: Vec<Part>,
}

impl Container {
    /// Fetches the manifest and the configuration of the image for this machine.
    pub(super) async fn look_up(&self, meter: &Arc<Meter>) -> Result<Image, Error> {
        meter.say(format!("requesting {} from the box", self.image));
        let path = self.image.manifest_path();
        let bytes = self.document(&path, self.image.digest(), MANIFEST_BYTES, meter).await?;
        let mut manifest = Manifest::read(&bytes).map_err(|why| self.bad(why))?;
        if let Manifest::Index(part) = manifest {
            let path = self.image.manifest_at(&part.digest);
            let digest = Some(self.digest(&part)?);
            let bytes = self.document(&path, digest, MANIFEST_BYTES, meter).await?;
            manifest = Manifest::read(&bytes).map_err(|why| self.bad(why))?;
        }
        let Manifest::Image { config, layers } = manifest else {
            return Err(self.bad("its index refers to another index"));
        };
        let path = self.image.blob_path(&config.digest);
        let digest = Some(self.digest(&config)?);
        let config = self.document(&path, digest, CONFIG_BYTES, meter).await?;
        Ok(Image { config, layers })
    }

    /// Fetches and unpacks all layers to `root`. Returns the unpacked entries and the fetched
    /// bytes.
    pub(super) async fn unpack(
        &self,
        layers: &[Part],
        root: &Arc<File>,
        capacity: u64,
        meter: &Arc<Meter>,
    ) -> Result<(UnpackSummary, u64), Error> {
        let (mut all, mut fetched) = (UnpackSummary::default(), 0);
        for (index, layer) in layers.iter().enumerate() {
            let (number, count) = (index + 1, layers.len());
            meter.say(format!("fetching layer {number} of {count} of {}", self.image));
            let checksum = Some(self.digest(layer)?);
            let archive =
                Archive { url: self.url(&self.image.blob_path(&layer.digest))?, checksum };
            let (root, url) = (root.clone(), archive.url.to_string());
            let image_name = self.image_name.clone();
            let work = move |bytes: &mut dyn std::io::Read| {
                unpack_layer(bytes, &root)
                    .map_err(|refused| sentence(refused, image_name, url, capacity))
            };
            let (unpacked, bytes) = read_archive(&archive, self.timeouts, meter, work).await?;
            all.entries += unpacked.entries;
            all.bytes += unpacked.bytes;
            fetched += bytes;
        }
        Ok((all, fetched))
    }

    async fn document(
        &self,
        path: &str,
        checksum: Option<Checksum>,
        most: u64,
        meter: &Arc<Meter>,
    ) -> Result<Vec<u8>, Error> {
        let document = Archive { url: self.url(path)?, checksum };
        Ok(read_document(&document, most, self.timeouts, meter).await?)
    }

    fn url(&self, path: &str) -> Result<Url, Error> {
        Ok(format!("http://{}{path}", self.registry).parse()?)
    }

    fn digest(&self, part: &Part) -> Result<Checksum, Error> {
        read_digest(&part.digest).map_err(|why| self.bad(why))
    }
}

/// Returns the error for a layer that cannot be unpacked to a file system of `capacity` bytes.
fn sentence(
    refused: UnpackError,
    image_name: String,
    url: String,
    capacity: u64,
) -> imaging::Error {
    match refused.source.kind() {
        std::io::ErrorKind::StorageFull => {
            imaging::Error::ImageTooLarge { image: image_name, room: capacity }
        }
        _ => imaging::Error::Layer { url, entry: refused.name, source: refused.source },
    }
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};
    use unpack::unpack_layer;

    use super::sentence;
    use crate::container::sandbox::Sandbox;

    fn layer(files: u64, bytes: u64) -> Vec<u8> {
        let mut tar = Builder::new(Vec::new());
        for number in 0..files {
            let mut header = Header::new_gnu();
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(1);
            header.set_size(bytes);
            let contents = std::io::Read::take(std::io::repeat(7), bytes);
            tar.append_data(&mut header, number.to_string(), contents).unwrap();
        }
        tar.into_inner().unwrap()
    }

    /// Needs root to mount a tmpfs.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_image_that_memory_does_not_hold_is_refused_and_its_memory_is_free_again() {
        for (files, bytes) in [(1, 3 << 20), (3000, 1)] {
            let sandbox = Sandbox::of(2 << 20).await.unwrap();
            let root = sandbox.root().clone();
            let refused = unpack_layer(&mut layer(files, bytes).as_slice(), &root).unwrap_err();
            let (image, url) = ("alpine:3".to_owned(), String::new());
            let error = sentence(refused, image, url, sandbox.bytes).to_string();
            assert!(error.starts_with("the image \"alpine:3\" needs more than 2.0 MiB"), "{error}");
            let used = || rustix::fs::fstatvfs(&root).map(|it| it.f_blocks - it.f_bfree);
            assert!(used().unwrap() > 0);
            sandbox.close().await;
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
            assert!(!mounts.contains("tinbox-agent/container"), "{mounts}");
        }
    }
}
