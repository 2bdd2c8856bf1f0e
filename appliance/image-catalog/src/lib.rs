//! Operating system images as a person manages them: list, check of a form, storing as OSImages,
//! and the Template data that install one.
//!
//! Never: reads or stores the files themselves (the image cache does), or changes a Template.
//!
//! Enter at [`ImageCatalog`], [`KNOWN`] and [`template_data`].

mod error;
mod form;
mod known;

use std::sync::Arc;

use api::meta::ObjectKey;
use api::os_image::{ImageFormat, OS_IMAGE, OsImage};
pub use machine_install::image::UPLOADED;
use machine_install::image::{ImageRequest, resolve};
use machine_install::template::{Installation, TargetDisk, default_data};
use machine_install::user_data::DataFormat;
use objects::{ObjectError, Objects, read};
use serde_json::{Value, json};

pub use error::{CatalogError, FieldError};
pub use form::{CheckedImage, ImageForm};
pub use known::{KNOWN, KnownImage};

/// Namespace of the OSImages that a person creates on the pages, and of all uploaded files.
pub const NAMESPACE: &str = "default";
/// Maximum size of an uploaded image in bytes: that of a large disk.
pub const UPLOAD_BYTES_MAX: u64 = 64 << 30;
/// Distributions whose systems read another format than that of cloud-init.
const FLATCAR: &str = "flatcar";
const TALOS: &str = "talos";

/// OSImage in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSummary {
    /// Name of the OSImage.
    pub name: String,
    /// Distribution and version, such as `debian-13`.
    pub os: String,
    /// URL of the file.
    pub url: String,
    /// Checksum and its algorithm, or the URL of a file of checksums; empty if there is none.
    pub checksum: String,
    /// True for a file that a person uploaded.
    pub is_uploaded: bool,
}

/// Reader and writer of OSImages. Clones share the objects.
#[derive(Clone)]
pub struct ImageCatalog {
    objects: Arc<dyn Objects>,
    namespace: String,
}

impl ImageCatalog {
    /// Creates a catalog of the OSImages in `objects`, in the namespace [`NAMESPACE`].
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self::in_namespace(objects, NAMESPACE)
    }

    /// Creates a catalog of the OSImages in a namespace of `objects`.
    pub fn in_namespace(objects: Arc<dyn Objects>, namespace: &str) -> Self {
        Self { objects, namespace: namespace.to_owned() }
    }

    /// Returns the OSImages, sorted by name.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn list(&self) -> Result<Vec<ImageSummary>, CatalogError> {
        let mut all: Vec<ImageSummary> = self.images().await?.iter().map(summary).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Returns the OSImages as objects.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn images(&self) -> Result<Vec<OsImage>, ObjectError> {
        let all = self.objects.list(OS_IMAGE, Some(&self.namespace)).await?;
        all.into_iter().map(read).collect()
    }

    /// Creates the OSImage of a form, with the file at `url`. An OSImage of this name is replaced
    /// if both are of uploaded files. Returns the object; without a change, nothing is written.
    ///
    /// # Errors
    /// The name is taken, or the API refuses the OSImage.
    pub async fn save(
        &self,
        image: &CheckedImage,
        url: &str,
        format: ImageFormat,
    ) -> Result<Value, CatalogError> {
        let spec = image.spec(url, format);
        let Some(mut old) = self.find(&image.name).await? else {
            let object = json!({
                "apiVersion": OS_IMAGE.api_version(),
                "kind": OS_IMAGE.kind,
                "metadata": { "name": image.name, "namespace": self.namespace },
                "spec": spec,
            });
            return Ok(self.objects.create(OS_IMAGE, object).await?);
        };
        if !image.may_replace(&old) {
            return Err(CatalogError::Taken(image.name.clone()));
        }
        if old["spec"] == spec {
            return Ok(old);
        }
        old["spec"] = spec;
        Ok(self.objects.update(OS_IMAGE, old).await?)
    }

    /// Checks that [`Self::save`] would not refuse the name, before a large upload.
    ///
    /// # Errors
    /// The name is taken, or OSImages cannot be read.
    pub async fn check_name(&self, image: &CheckedImage) -> Result<(), CatalogError> {
        match self.find(&image.name).await? {
            Some(old) if !image.may_replace(&old) => Err(CatalogError::Taken(image.name.clone())),
            _ => Ok(()),
        }
    }

    /// Adds an image of [`KNOWN`] by its name.
    ///
    /// # Errors
    /// No image of [`KNOWN`] has this name, or an OSImage has it.
    pub async fn add_known(&self, name: &str) -> Result<Value, CatalogError> {
        let known = KNOWN.iter().find(|it| it.name == name);
        let known = known.ok_or_else(|| CatalogError::Missing(name.to_owned()))?;
        self.save(&CheckedImage::of_known(known), known.url, known.format).await
    }

    /// Deletes an OSImage. Returns the URL of its file if no other OSImage names it: then the file
    /// needs no pin. Machines that are being installed are not affected, because their workflows
    /// name the file.
    ///
    /// # Errors
    /// No OSImage has this name, or the OSImage cannot be deleted.
    pub async fn remove(&self, name: &str) -> Result<Option<String>, CatalogError> {
        let old = self.find(name).await?;
        let old = old.ok_or_else(|| CatalogError::Missing(name.to_owned()))?;
        self.objects.delete(OS_IMAGE, &self.key(name)).await?;
        let url = old["spec"]["url"].as_str().unwrap_or_default().to_owned();
        // Every file keeps its pin if the list cannot be read.
        let others = self.list().await;
        let is_free = others.is_ok_and(|others| others.iter().all(|it| it.url != url));
        Ok(is_free.then_some(url))
    }

    async fn find(&self, name: &str) -> Result<Option<Value>, ObjectError> {
        objects::find(&*self.objects, OS_IMAGE, &self.key(name)).await
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(&*self.namespace, name)
    }
}

fn summary(image: &OsImage) -> ImageSummary {
    let sums = image.spec.checksum.clone().unwrap_or_default();
    let of = |algorithm: &str, sum: Option<String>| sum.map(|sum| format!("{algorithm} {sum}"));
    let checksum = of("SHA-256", sums.sha256).or(of("SHA-512", sums.sha512));
    let checksum = checksum.or(of("MD5", sums.md5)).or(sums.url);
    ImageSummary {
        name: image.metadata.name.clone(),
        os: image.spec.os.to_string(),
        url: image.spec.url.clone(),
        checksum: checksum.unwrap_or_default(),
        is_uploaded: image.spec.url.starts_with(UPLOADED),
    }
}

/// Returns true if the system of an image reads Ignition instead of cloud-init's user data.
pub fn reads_ignition(image: &OsImage) -> bool {
    image.spec.os.distro.eq_ignore_ascii_case(FLATCAR)
}

/// Returns Template data that install an image on the first disk of any machine. `server` is the
/// address at which machines reach the box.
///
/// # Errors
/// The OSImage is not valid.
pub fn template_data(image: &OsImage, server: &str) -> Result<String, CatalogError> {
    let name = image.metadata.name.as_str();
    let request = ImageRequest { os_image: Some(name.to_owned()), ..ImageRequest::default() };
    let resolved = resolve(&request, std::slice::from_ref(image))?;
    let format = match &image.spec.os.distro.to_lowercase() {
        distro if distro == FLATCAR => DataFormat::Ignition,
        distro if distro == TALOS => DataFormat::Talos,
        _ => DataFormat::CloudConfig,
    };
    let data = default_data(&Installation {
        name,
        image: &resolved,
        disk: TargetDisk::FirstOfHardware,
        metadata_url: &format!("http://{server}:50061"),
        format: &format,
    });
    Ok(data?)
}

#[cfg(test)]
mod tests;
