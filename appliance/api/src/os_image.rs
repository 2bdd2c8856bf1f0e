//! Group `tinbox.dev/v1alpha1`: kind OSImage, an operating system image that machines can install.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::meta::{Object, Resource};

/// Resource of the kind OSImage.
pub const OS_IMAGE: Resource =
    Resource { group: "tinbox.dev", version: "v1alpha1", kind: "OSImage", plural: "osimages" };

/// Definition of the kind OSImage, as JSON of its CustomResourceDefinition.
pub const OS_IMAGES: &str = include_str!("os_image/osimages.json");

/// Operating system image that machines can install.
pub type OsImage = Object<OsImageSpec, OsImageStatus>;

/// Location and content of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OsImageSpec {
    /// `http` or `https` URL of the image, or `upload://box/NAME` of an uploaded file;
    /// for the format `oci` a registry reference such as `ghcr.io/owner/image:tag`.
    pub url: String,
    /// Expected checksum of the image as downloaded, before decompression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<ImageChecksum>,
    /// Format of the image.
    pub format: ImageFormat,
    /// Operating system in the image.
    pub os: ImageOs,
    /// Kubernetes version in the image, such as `v1.33.1`, or only its first numbers (`v1.33`).
    /// `None` for an image that fits every version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// CPU architecture: `x86_64` or `aarch64`. `None` for an image that fits every machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
}

/// Status of an OSImage, always empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsImageStatus {}

/// Expected checksum of an image; the definition of the kind permits exactly one field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageChecksum {
    /// SHA-256, as 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// SHA-512, as 128 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// MD5, as 32 hexadecimal digits. Detects accidental damage, not a forged image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub md5: Option<String>,
    /// URL of a file of checksums that contains the file name of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Format of an image. The agent detects the compression by the first bytes of the image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Content of a disk: uncompressed, or compressed with gzip, xz, zstd, bzip2 or lz4.
    #[default]
    Raw,
    /// Disk image of QEMU, version 2 or 3.
    Qcow2,
    /// Content of a disk, compressed or not, as a layer in an OCI registry.
    Oci,
}

/// Operating system in an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageOs {
    /// Distribution, such as `ubuntu`.
    pub distro: String,
    /// Version of the distribution, such as `24.04`.
    pub version: String,
}

/// Format: `distro-version`, such as `ubuntu-24.04`.
impl fmt::Display for ImageOs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.distro, self.version)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ImageFormat, OS_IMAGE, OS_IMAGES, OsImage};

    fn full() -> Value {
        json!({
            "apiVersion": "tinbox.dev/v1alpha1",
            "kind": "OSImage",
            "metadata": { "name": "ubuntu-24.04" },
            "spec": {
                "url": "https://images.example/noble.img",
                "checksum": { "url": "https://images.example/SHA256SUMS" },
                "format": "qcow2",
                "os": { "distro": "ubuntu", "version": "24.04" },
                "kubernetesVersion": "v1.33.1",
                "architecture": "x86_64",
            },
            "status": {},
        })
    }

    #[test]
    fn an_image_is_read_and_written_without_loss() {
        let image: OsImage = serde_json::from_value(full()).unwrap();
        assert_eq!(
            (image.spec.format, image.spec.os.to_string()),
            (ImageFormat::Qcow2, "ubuntu-24.04".to_owned())
        );
        assert_eq!(serde_json::to_value(&image).unwrap(), full());
        let least =
            json!({ "spec": { "url": "http://a/b", "os": { "distro": "a", "version": "1" } } });
        let image: OsImage = serde_json::from_value(least).unwrap();
        assert_eq!((image.spec.format, image.spec.checksum), (ImageFormat::Raw, None));
    }

    #[test]
    fn the_definition_has_the_fields_of_the_type() {
        let definition: Value = serde_json::from_str(OS_IMAGES).unwrap();
        let (spec, version) = (&definition["spec"], &definition["spec"]["versions"][0]);
        assert_eq!(definition["metadata"]["name"], "osimages.tinbox.dev");
        assert_eq!(spec["group"], OS_IMAGE.group);
        assert_eq!(spec["names"]["kind"], OS_IMAGE.kind);
        assert_eq!(spec["names"]["plural"], OS_IMAGE.plural);
        assert_eq!(version["name"], OS_IMAGE.version);
        let schema = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let names = |value: &Value| -> Vec<String> {
            let mut names: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(names(&schema["properties"]), names(&full()["spec"]));
        assert_eq!(names(&schema["properties"]["os"]["properties"]), ["distro", "version"]);
        let sums = &schema["properties"]["checksum"];
        assert_eq!(names(&sums["properties"]), ["md5", "sha256", "sha512", "url"]);
        let all = serde_json::to_value([ImageFormat::Raw, ImageFormat::Qcow2, ImageFormat::Oci]);
        assert_eq!(schema["properties"]["format"]["enum"], all.unwrap());
    }
}
