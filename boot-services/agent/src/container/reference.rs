//! What an action calls its image, read as Docker reads it: `alpine` is
//! `docker.io/library/alpine:latest`.

use std::fmt;

use imaging::stream::{Algorithm, Checksum};

/// The registry of names that have none.
const DOCKER: &str = "docker.io";
/// Where that registry has images whose name has no owner.
const LIBRARY: &str = "library/";
const LATEST: &str = "latest";
/// The longest name of a repository, and of a tag (OCI distribution specification, "Pulling
/// manifests").
const REPOSITORY_LEN: usize = 255;
const TAG_LEN: usize = 128;

/// An image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    registry: String,
    repository: String,
    /// A tag, or a digest as it is written.
    manifest: String,
    /// What the manifest must hash to.
    pub digest: Option<Checksum>,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let is_registry = |part: &&str| part.contains(['.', ':']) || *part == "localhost";
        let (registry, rest) = match name.split_once('/') {
            Some((first, rest)) if is_registry(&first) => (first, rest),
            _ => (DOCKER, name),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, tag),
            None => (rest, LATEST),
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-');
        if !registry.chars().all(is_host) {
            return Err(format!("{registry:?} is no registry's host"));
        }
        let registry = if registry == "index.docker.io" { DOCKER } else { registry };
        let bare = registry == DOCKER && !repository.contains('/');
        let repository = format!("{}{repository}", if bare { LIBRARY } else { "" });
        let is_sign = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
        let is_part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(is_sign)
        };
        if !repository.split('/').all(is_part) || repository.len() > REPOSITORY_LEN {
            let signs = "lower-case letters, digits, '.', '_', '-' and '/'";
            return Err(format!("{rest:?} is no name made of {signs}"));
        }
        let is_tag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let begins = tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if !begins || tag.len() > TAG_LEN || !tag.chars().all(is_tag) {
            return Err(format!("{tag:?} is no tag"));
        }
        let Some(digest) = digest else {
            let (registry, manifest) = (registry.to_owned(), tag.to_owned());
            return Ok(Self { registry, repository, manifest, digest: None });
        };
        let sum = read_digest(digest)?;
        let (registry, manifest) = (registry.to_owned(), digest.to_owned());
        Ok(Self { registry, repository, manifest, digest: Some(sum) })
    }

    /// Where the box has the manifest.
    pub fn manifest_path(&self) -> String {
        self.manifest_at(&self.manifest)
    }

    /// Where the box has another manifest of the repository.
    pub fn manifest_at(&self, digest: &str) -> String {
        format!("/v2/{}/{}/manifests/{digest}", self.registry, self.repository)
    }

    /// Where the box has a blob of the repository.
    pub fn blob_path(&self, digest: &str) -> String {
        format!("/v2/{}/{}/blobs/{digest}", self.registry, self.repository)
    }
}

/// `docker.io/library/alpine:latest`.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.digest.is_some() { '@' } else { ':' };
        write!(f, "{}/{}{mark}{}", self.registry, self.repository, self.manifest)
    }
}

/// `sha256:<64 digits>`, the one algorithm that registries have in common.
pub fn read_digest(text: &str) -> Result<Checksum, String> {
    let digits = text.strip_prefix("sha256:").filter(|it| !it.contains(char::is_uppercase));
    let sum = digits.and_then(|digits| Checksum::parse(Algorithm::Sha256, digits));
    sum.ok_or_else(|| format!("{text:?} is no digest like sha256:<64 digits>"))
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
