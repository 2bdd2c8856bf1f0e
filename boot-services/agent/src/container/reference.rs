//! Parses an action's image name as Docker does (`alpine` is `docker.io/library/alpine:latest`),
//! and returns its paths in the box's registry.

use std::fmt;

use imaging::stream::{Algorithm, Checksum};
use oci_reference::{Digest, Manifest};

/// Reference of an image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference(oci_reference::Reference);

impl Reference {
    /// Parses an image name, and adds the defaults of Docker.
    ///
    /// # Errors
    /// The name is invalid; the text is the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        oci_reference::Reference::of_image(text).map(Self)
    }

    /// Returns the required checksum of the manifest; `None` for a reference by tag.
    pub fn digest(&self) -> Option<Checksum> {
        match &self.0.manifest {
            Manifest::Tag(_) => None,
            Manifest::Digest(digest) => checksum(*digest),
        }
    }

    /// Returns the path of the image's manifest in the box's registry.
    pub fn manifest_path(&self) -> String {
        match &self.0.manifest {
            Manifest::Tag(tag) => self.manifest_at(tag),
            Manifest::Digest(digest) => self.manifest_at(&digest.to_string()),
        }
    }

    /// Returns the path of another manifest of the repository, by digest or tag.
    pub fn manifest_at(&self, digest: &str) -> String {
        format!("/v2/{}/{}/manifests/{digest}", self.0.registry, self.0.repository)
    }

    /// Returns the path of a blob of the repository.
    pub fn blob_path(&self, digest: &str) -> String {
        format!("/v2/{}/{}/blobs/{digest}", self.0.registry, self.0.repository)
    }
}

/// Format: complete reference, such as `docker.io/library/alpine:latest`.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn checksum(digest: Digest) -> Option<Checksum> {
    Checksum::parse(Algorithm::Sha256, &digest.hex())
}

/// Parses a digest `sha256:<64 lower-case digits>`. Other algorithms are refused.
pub fn read_digest(text: &str) -> Result<Checksum, String> {
    let digest = Digest::parse(text).filter(|_| !text.contains(char::is_uppercase));
    let sum = digest.and_then(checksum);
    sum.ok_or_else(|| format!("expected a digest such as sha256:<64 digits>, found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::Reference;

    #[test]
    fn a_name_leads_to_a_path_of_the_boxs_registry() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let of_digest = format!("ghcr.io/a/b:v1@{digest}");
        for (text, path) in [
            ("alpine", "docker.io/library/alpine/manifests/latest"),
            ("alpine:3.20", "docker.io/library/alpine/manifests/3.20"),
            ("jacob/tool", "docker.io/jacob/tool/manifests/latest"),
            ("docker.io/alpine", "docker.io/library/alpine/manifests/latest"),
            ("index.docker.io/a/b:c", "docker.io/a/b/manifests/c"),
            ("localhost/a", "localhost/a/manifests/latest"),
            ("10.1.1.1:5000/a", "10.1.1.1:5000/a/manifests/latest"),
            ("quay.io/x/y/z:v1", "quay.io/x/y/z/manifests/v1"),
            (&of_digest, &format!("ghcr.io/a/b/manifests/{digest}")),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!(reference.manifest_path(), format!("/v2/{path}"), "{text}");
        }
        let reference = Reference::parse("alpine").unwrap();
        assert_eq!(reference.to_string(), "docker.io/library/alpine:latest");
        assert_eq!(
            reference.blob_path(&digest),
            format!("/v2/docker.io/library/alpine/blobs/{digest}")
        );
    }

    #[test]
    fn what_names_no_image_is_refused() {
        for text in [
            "",
            "/",
            "a/",
            "Alpine",
            "a b",
            "a:",
            "a:.b",
            "a:b:c",
            "ghcr.io/",
            "ghcr.io/../a",
            "ghcr.io/a/./b",
            "ghcr.io/a?x=1",
            "ghcr.io/a#b",
            "gh_cr.io/a",
            "a@sha256:12",
            "a@md5:00",
            "ghcr.io//a",
            "a/%2e%2e/b",
        ] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
        assert!(Reference::parse(&"a".repeat(300)).is_err());
        assert!(Reference::parse(&format!("a:{}", "t".repeat(129))).is_err());
    }
}
