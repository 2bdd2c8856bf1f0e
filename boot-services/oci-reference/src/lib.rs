//! Parses names of images in registries (OCI distribution specification 1.1). The box and the agent
//! share this parser, so that both mean the same manifest.
//!
//! The crate must never: open a connection, or verify a digest.
//!
//! Enter at [`Reference::parse`] and [`Reference::of_image`].

mod digest;
#[cfg(test)]
mod tests;

use std::fmt;

pub use digest::Digest;

/// Maximum length in bytes of a repository name, and of a tag.
const REPOSITORY_LEN: usize = 255;
const TAG_LEN: usize = 128;
/// Docker Hub: registry name in image references, and host name of the server.
const DOCKER: (&str, &str) = ("docker.io", "registry-1.docker.io");
/// Docker Hub's namespace for images without an owner: `alpine` is `library/alpine`.
const LIBRARY: &str = "library/";

/// Reference to a manifest in a registry: `ghcr.io/owner/image:tag`, `…@sha256:<hex>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Host of the registry: `host` or `host:port`.
    pub registry: String,
    /// Name of the repository: `owner/image`.
    pub repository: String,
    /// Tag or digest of the manifest.
    pub manifest: Manifest,
}

/// Tag or digest that selects one manifest of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// Tag. The registry can move a tag to another manifest at any time.
    Tag(String),
    /// Digest, which identifies exactly one manifest.
    Digest(Digest),
}

impl Reference {
    /// Parses a reference that includes the registry's host, such as `ghcr.io/owner/image:tag`.
    ///
    /// # Errors
    /// The reference is invalid; the text is a sentence with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} is not an image in a registry: {why}"));
        let Some((registry, rest)) = text.split_once('/') else {
            return wrong("expected host/name:tag");
        };
        let is_host =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '[' | ']');
        if !has_sign(registry) || !registry.chars().all(is_host) {
            return wrong("it must begin with the registry's host, such as ghcr.io/");
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        let is_name = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
        let is_part = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric());
        let good = repository.split('/').all(|part| is_part(part) && part.chars().all(is_name));
        if !good || repository.len() > REPOSITORY_LEN {
            return wrong("the name must be lower-case letters, digits, '.', '_', '-' and '/'");
        }
        let is_tag = |tag: &&str| {
            let mut rest = tag.chars();
            let first = rest.next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            let others = rest.all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
            tag.len() <= TAG_LEN && first && others
        };
        let manifest = match (digest, tag.filter(is_tag)) {
            (Some(digest), _) => match Digest::parse(digest.trim_end()) {
                Some(digest) => Manifest::Digest(digest),
                None => return wrong("after @ it must have sha256: and 64 digits"),
            },
            (None, Some(tag)) => Manifest::Tag(tag.to_owned()),
            (None, None) => return wrong("it must end with :tag or @sha256:digits"),
        };
        let (registry, repository) = (registry.to_owned(), repository.to_owned());
        Ok(Self { registry, repository, manifest })
    }

    /// Parses the image name of an action as Docker does: `alpine` is
    /// `docker.io/library/alpine:latest`.
    ///
    /// # Errors
    /// The completed reference is invalid, as in [`Reference::parse`].
    pub fn of_image(text: &str) -> Result<Self, String> {
        let (name, digest) = text.split_at(text.find('@').unwrap_or(text.len()));
        let (docker, _) = DOCKER;
        let (registry, rest) = match name.split_once('/') {
            Some((first, rest)) if has_sign(first) => (first, rest),
            _ => (docker, name),
        };
        let registry = if registry == "index.docker.io" { docker } else { registry };
        let library = if registry == docker && !rest.contains('/') { LIBRARY } else { "" };
        let tag = if rest.contains(':') || !digest.is_empty() { "" } else { ":latest" };
        Self::parse(&format!("{registry}/{library}{rest}{tag}{digest}"))
    }

    /// Builds the reference of a request to the box's registry, for the manifest or blob `what` (a
    /// tag or digest) of the repository `name`. The upstream registry is `ns`, else the first part
    /// of `name` if that part is a host, else Docker Hub.
    ///
    /// # Errors
    /// The completed reference is invalid, as in [`Reference::parse`].
    pub fn asked(name: &str, ns: Option<&str>, what: &str) -> Result<Self, String> {
        let mark = if what.contains(':') { '@' } else { ':' };
        match ns {
            Some(ns) => Self::parse(&format!("{ns}/{name}{mark}{what}")),
            None => Self::of_image(&format!("{name}{mark}{what}")),
        }
    }

    /// Returns a reference to the manifest `digest` in the same repository.
    #[must_use]
    pub fn by_digest(&self, digest: Digest) -> Self {
        Self { manifest: Manifest::Digest(digest), ..self.clone() }
    }

    /// Returns the base URL of the repository, `https://<host>/v2/<repository>`; scheme `http` if
    /// `is_plain`.
    pub fn base(&self, is_plain: bool) -> String {
        let (said, meant) = DOCKER;
        let host = if self.registry == said { meant } else { &self.registry };
        let scheme = if is_plain { "http" } else { "https" };
        format!("{scheme}://{host}/v2/{}", self.repository)
    }
}

/// Format: `ghcr.io/owner/image:tag` or `ghcr.io/owner/image@sha256:<hex>`.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registry, repository, manifest } = self;
        match manifest {
            Manifest::Tag(tag) => write!(f, "{registry}/{repository}:{tag}"),
            Manifest::Digest(digest) => write!(f, "{registry}/{repository}@{digest}"),
        }
    }
}

/// Returns true if `part`, the first part of an image name, is a host: has `.` or `:`, or is
/// `localhost`.
fn has_sign(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost"
}
