//! Disk images in OCI registries, as upstream's `oci2disk` reads them: an artifact whose one layer
//! is the file (OCI distribution specification 1.1, "Pulling manifests" and "Pulling blobs"; image
//! specification, "Image Manifest").
//!
//! The layer's digest is checked when all of it is here, so its name need not be believed.

use axum::http::{HeaderMap, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::Connect;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::origin::{part, put, refusal};
use super::{Checksum, Digest, HttpOrigin, Part, Refusal};

/// What the URL of a file in a registry begins with; a [`Reference`] follows.
pub const SCHEME: &str = "oci://";
/// The layer that is the disk image, where there are several.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// Documents that are understood.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";
/// The specification's bound on manifests.
const MANIFEST_BYTES: usize = 4 << 20;
const TOKEN_BYTES: usize = 64 << 10;
/// The longest name of a repository, and of a tag.
const REPOSITORY_LEN: usize = 255;
const TAG_LEN: usize = 128;
/// Docker's registry has another name than its images say.
const DOCKER: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// `ghcr.io/owner/image:tag`, `…@sha256:<hex>`: where a file is in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// `host` or `host:port`.
    pub registry: String,
    /// `owner/image`.
    pub repository: String,
    /// The manifest's tag or digest.
    pub manifest: Manifest,
}

/// Which of a repository's manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// The one that has the tag now.
    Tag(String),
    /// This one.
    Digest(Digest),
}

impl Reference {
    /// Reads a reference, which must name its registry.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} names no image in a registry: {why}"));
        let Some((registry, rest)) = text.split_once('/') else {
            return wrong("it is to be host/name:tag");
        };
        let is_host =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '[' | ']');
        let has_sign = registry.contains(['.', ':']) || registry == "localhost";
        if !has_sign || !registry.chars().all(is_host) {
            return wrong("it is to begin with the registry's host, such as ghcr.io/");
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
            return wrong("the name is to be lower-case letters, digits, '.', '_', '-' and '/'");
        }
        let is_tag = |tag: &&str| {
            let mut rest = tag.chars();
            let first = rest.next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            let others = rest.all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
            tag.len() <= TAG_LEN && first && others
        };
        let manifest = match (digest, tag.filter(is_tag)) {
            (Some(digest), _) => match sha256(digest) {
                Some(digest) => Manifest::Digest(digest),
                None => return wrong("after @ is to be sha256: and 64 digits"),
            },
            (None, Some(tag)) => Manifest::Tag(tag.to_owned()),
            (None, None) => return wrong("it is to end with :tag or @sha256:digits"),
        };
        let (registry, repository) = (registry.to_owned(), repository.to_owned());
        Ok(Self { registry, repository, manifest })
    }

    /// `/v2/<repository>` on the registry's server.
    fn base(&self, is_plain: bool) -> String {
        let (said, meant) = DOCKER;
        let host = if self.registry == said { meant } else { &self.registry };
        let scheme = if is_plain { "http" } else { "https" };
        format!("{scheme}://{host}/v2/{}", self.repository)
    }
}

/// `sha256:<64 digits>`, and nothing shorter.
fn sha256(text: &str) -> Option<Digest> {
    match text.parse() {
        Ok(Checksum::Sha256(digest)) if text.starts_with("sha256:") => Some(digest),
        _ => None,
    }
}

/// The part of a manifest that tells where the disk image is.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    layers: Vec<Layer>,
    #[serde(default)]
    manifests: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
}

/// The digest and size of the file in an artifact: its only layer, or the first of the media type
/// that upstream's `oci2disk` takes.
///
/// # Errors
/// Why it is in none of them, as a sentence.
pub fn file_of(manifest: &[u8]) -> Result<(Digest, u64), String> {
    let document: Document = serde_json::from_slice(manifest)
        .map_err(|error| format!("its manifest is not one: {error}"))?;
    let count = document.layers.len();
    let chosen = match document.layers.as_slice() {
        [] if !document.manifests.is_empty() => {
            let many = document.manifests.len();
            return Err(format!("it is an index of {many} manifests: name one by its digest"));
        }
        [only] => Some(only),
        layers => layers.iter().find(|layer| layer.media_type == LAYER),
    };
    let layer = chosen
        .ok_or_else(|| format!("of its {count} layers none is the disk image, of type {LAYER}"))?;
    let digest = sha256(&layer.digest)
        .ok_or_else(|| format!("its layer's digest {:?} is not of SHA-256", layer.digest))?;
    Ok((digest, layer.size))
}

/// What a registry wants to be asked with (RFC 6750 section 3, "Token Authentication
/// Specification" of the distribution project).
#[derive(Debug, PartialEq, Eq)]
pub struct Challenge {
    realm: String,
    service: Option<String>,
    scope: Option<String>,
}

impl Challenge {
    /// Reads a `WWW-Authenticate` field; `None` unless it asks for a bearer token from somewhere.
    pub fn parse(field: &str) -> Option<Self> {
        let (scheme, mut rest) = field.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        while let Some((name, after)) = rest.split_once('=') {
            let value;
            (value, rest) = parameter(after)?;
            match name.trim_matches([' ', ',', '\t']).to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                "scope" => scope = Some(value),
                _ => {}
            }
        }
        Some(Self { realm: realm?, service, scope })
    }

    /// Where the token is to be had.
    fn url(&self, repository: &str) -> String {
        let scope = self.scope.clone().unwrap_or_else(|| format!("repository:{repository}:pull"));
        let mark = if self.realm.contains('?') { '&' } else { '?' };
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let service = self.service.as_ref().map(|it| format!("service={}&", encoded(it)));
        let service = service.unwrap_or_default();
        format!("{}{mark}{service}scope={}", self.realm, encoded(&scope))
    }
}

/// A token or quoted string (RFC 9110 section 5.6), and what follows it.
fn parameter(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return Some((text[..end].trim().to_owned(), &text[end..]));
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '"' if !is_escaped => return Some((value, &quoted[at + 1..])),
            '\\' if !is_escaped => is_escaped = true,
            _ => {
                value.push(c);
                is_escaped = false;
            }
        }
    }
    None
}

#[derive(Deserialize)]
struct Token {
    #[serde(alias = "access_token")]
    token: String,
}

impl<C: Connect + Clone + Send + Sync + 'static> HttpOrigin<C> {
    /// The file at a reference from offset `first` on, if it is still the one that `tag` tells of.
    pub(super) async fn registry_part(
        &self,
        reference: &str,
        first: u64,
        tag: Option<&str>,
    ) -> Result<Part, Refusal> {
        let reference = Reference::parse(reference).map_err(Refusal::Never)?;
        let base = reference.base(self.plain_registries.contains(&reference.registry));
        let mut fields = HeaderMap::new();
        let manifest = self.manifest(&base, &reference, &mut fields).await?;
        let (digest, size) = file_of(&manifest).map_err(Refusal::Never)?;
        let own = format!("\"{digest}\"");
        let first = if tag.is_none_or(|tag| tag == own) { first } else { 0 };
        if first > 0 {
            put(&mut fields, header::RANGE, &format!("bytes={first}-"))?;
        }
        let answer = self.ask(&format!("{base}/blobs/{digest}"), fields).await?;
        let part = part(answer, first)?;
        Ok(Part { total: Some(size), tag: Some(own), digest: Some(digest), ..part })
    }

    /// The manifest, once it was asked for as the registry wants it to be; `fields` then has what
    /// the next request needs.
    async fn manifest(
        &self,
        base: &str,
        reference: &Reference,
        fields: &mut HeaderMap,
    ) -> Result<Vec<u8>, Refusal> {
        let name = match &reference.manifest {
            Manifest::Tag(tag) => tag.clone(),
            Manifest::Digest(digest) => digest.to_string(),
        };
        let url = format!("{base}/manifests/{name}");
        let ask = |fields: &HeaderMap| {
            let mut fields = fields.clone();
            fields.insert(header::ACCEPT, header::HeaderValue::from_static(MANIFESTS));
            self.ask(&url, fields)
        };
        let mut answer = ask(fields).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            let challenges = answer.headers().get_all(header::WWW_AUTHENTICATE);
            let mut texts = challenges.iter().filter_map(|it| it.to_str().ok());
            let challenge = texts.find_map(Challenge::parse).ok_or_else(|| {
                Refusal::Never("it wants a user, and the box has none for registries".to_owned())
            })?;
            let token = self.token(&challenge, &reference.repository).await?;
            put(fields, header::AUTHORIZATION, &format!("Bearer {token}"))?;
            answer = ask(fields).await?;
        }
        let bytes = body(answer, MANIFEST_BYTES, "its manifest").await?;
        match &reference.manifest {
            Manifest::Digest(digest) if *digest != Digest::of(&bytes) => {
                Err(Refusal::Never("its manifest is not the one of that digest".to_owned()))
            }
            _ => Ok(bytes),
        }
    }

    /// A token for anybody.
    async fn token(&self, challenge: &Challenge, repository: &str) -> Result<String, Refusal> {
        let answer = self.ask(&challenge.url(repository), HeaderMap::new()).await?;
        let bytes = body(answer, TOKEN_BYTES, "its token").await?;
        let token: Token = serde_json::from_slice(&bytes)
            .map_err(|_| Refusal::Never("its token cannot be read".to_owned()))?;
        Ok(token.token)
    }
}

/// The whole of a short answer.
async fn body(answer: Response<Incoming>, max: usize, what: &str) -> Result<Vec<u8>, Refusal> {
    let status = answer.status();
    if !status.is_success() {
        return Err(match refusal(status) {
            Refusal::Later(why) => Refusal::Later(format!("{what}: {why}")),
            Refusal::Never(why) => Refusal::Never(format!("{what}: {why}")),
        });
    }
    let later = |error| Refusal::Later(format!("{what}: {error}"));
    let whole = Limited::new(answer.into_body(), max).collect().await.map_err(later)?;
    Ok(whole.to_bytes().to_vec())
}

#[cfg(test)]
mod tests;
