//! Requests manifests and blobs from a registry, and before them a token if the registry requires
//! one.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::Connect;

use super::{ANSWER_TIMEOUT, HttpOrigin, Part, Refusal, part, put, refusal};
use crate::Digest;
use crate::registry::challenge::{Challenge, token};
use crate::registry::document::{Answer, MANIFEST_BYTES};
use crate::registry::{Credentials, Document, Manifest, Manifests, Reference, file_of};

/// `Accept` media types of an artifact with a disk image.
const ARTIFACTS: HeaderValue = HeaderValue::from_static(
    "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json",
);
/// `Accept` media types of manifests that a client may get.
const MANIFESTS: HeaderValue = HeaderValue::from_static(
    "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json",
);
const TOKEN_BYTES: usize = 64 << 10;

/// Message if a registry requires a user and the box has no credentials for it.
const NO_CREDENTIALS: &str =
    "it requires a login, but the box has none for it: see images.credentials";
/// Message if the response of a token service has no token.
const NO_TOKEN: &str = "its token service sent no token: expected JSON with the string `token` or \
    `access_token`";

impl<C: Connect + Clone + Send + Sync + 'static> Manifests for HttpOrigin<C> {
    fn manifest<'a>(&'a self, reference: &'a Reference) -> Answer<'a> {
        Box::pin(async move {
            let mut proof = HeaderMap::new();
            self.read_manifest(reference, MANIFESTS, &mut proof).await
        })
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> HttpOrigin<C> {
    /// Returns the disk image at a reference from offset `first`, if its entity tag is still `tag`.
    pub(super) async fn registry_part(
        &self,
        reference: &str,
        first: u64,
        tag: Option<&str>,
    ) -> Result<Part, Refusal> {
        let reference = Reference::parse(reference).map_err(Refusal::Never)?;
        let mut proof = HeaderMap::new();
        let manifest = self.read_manifest(&reference, ARTIFACTS, &mut proof).await?;
        let (digest, size) = file_of(&manifest.bytes).map_err(Refusal::Never)?;
        let blob = self.blob(&reference, digest, first, tag, &mut proof).await?;
        Ok(Part { total: Some(size), ..blob })
    }

    /// Returns a blob from offset `first`, like [`Self::registry_part`]; the reference has its
    /// digest.
    pub(super) async fn blob_part(
        &self,
        reference: &str,
        first: u64,
        tag: Option<&str>,
    ) -> Result<Part, Refusal> {
        let reference = Reference::parse(reference).map_err(Refusal::Never)?;
        let Manifest::Digest(digest) = reference.manifest else {
            return Err(Refusal::Never("a blob is known by its digest alone".to_owned()));
        };
        self.blob(&reference, digest, first, tag, &mut HeaderMap::new()).await
    }

    async fn blob(
        &self,
        reference: &Reference,
        digest: Digest,
        first: u64,
        tag: Option<&str>,
        proof: &mut HeaderMap,
    ) -> Result<Part, Refusal> {
        let own = format!("\"{digest}\"");
        let first = if tag.is_none_or(|tag| tag == own) { first } else { 0 };
        let mut fields = HeaderMap::new();
        if first > 0 {
            put(&mut fields, header::RANGE, &format!("bytes={first}-"))?;
        }
        let place = format!("/blobs/{digest}");
        let answer = self.request(reference, &place, &fields, proof).await?;
        let part = part(answer, first)?;
        Ok(Part { tag: Some(own), digest: Some(digest), ..part })
    }

    /// Returns the manifest, which must have one of the media types in `accept`.
    async fn read_manifest(
        &self,
        reference: &Reference,
        accept: HeaderValue,
        proof: &mut HeaderMap,
    ) -> Result<Document, Refusal> {
        let name = match &reference.manifest {
            Manifest::Tag(tag) => tag.clone(),
            Manifest::Digest(digest) => digest.to_string(),
        };
        let fields = HeaderMap::from_iter([(header::ACCEPT, accept)]);
        let place = format!("/manifests/{name}");
        let answer = self.request(reference, &place, &fields, proof).await?;
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let media_type = kind.unwrap_or_default().to_owned();
        let bytes = body(answer, MANIFEST_BYTES, "its manifest").await?;
        match &reference.manifest {
            Manifest::Digest(digest) if *digest != Digest::of(&bytes) => {
                Err(Refusal::Never("its manifest does not match that digest".to_owned()))
            }
            _ => Ok(Document { bytes, media_type }),
        }
    }

    /// Sends a GET for `place` in the reference's repository. If the registry requires credentials,
    /// they are added to `proof` for the next request.
    async fn request(
        &self,
        reference: &Reference,
        place: &str,
        fields: &HeaderMap,
        proof: &mut HeaderMap,
    ) -> Result<Response<Incoming>, Refusal> {
        let is_plain = self.plain_registries.contains(&reference.registry);
        let url = format!("{}{place}", reference.base(is_plain));
        let all = |proof: &HeaderMap| {
            let mut all = fields.clone();
            all.extend(proof.clone());
            all
        };
        let answer = self.get(&url, all(proof)).await?;
        if answer.status() != StatusCode::UNAUTHORIZED || !proof.is_empty() {
            return Ok(answer);
        }
        let challenges = answer.headers().get_all(header::WWW_AUTHENTICATE);
        let texts: Vec<&str> = challenges.iter().filter_map(|it| it.to_str().ok()).collect();
        let known = self.credentials.get(&reference.registry);
        let is_basic =
            |text: &&str| text.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("basic"));
        let shown = if let Some(challenge) = texts.iter().find_map(|text| Challenge::parse(text)) {
            let known = known.filter(|_| is_plain || challenge.realm.starts_with("https://"));
            let token = self.token(&challenge, &reference.repository, known).await?;
            format!("Bearer {token}")
        } else if let Some(known) = known.filter(|_| texts.iter().any(is_basic)) {
            known.basic()
        } else {
            return Err(Refusal::Never(NO_CREDENTIALS.to_owned()));
        };
        put(proof, header::AUTHORIZATION, &shown)?;
        self.get(&url, all(proof)).await
    }

    /// Requests a token, anonymously or with the box's credentials.
    async fn token(
        &self,
        challenge: &Challenge,
        repository: &str,
        known: Option<&Credentials>,
    ) -> Result<String, Refusal> {
        let mut fields = HeaderMap::new();
        if let Some(known) = known {
            put(&mut fields, header::AUTHORIZATION, &known.basic())?;
        }
        let answer = self.get(&challenge.url(repository), fields).await?;
        if answer.status() == StatusCode::UNAUTHORIZED && known.is_none() {
            return Err(Refusal::Never(NO_CREDENTIALS.to_owned()));
        }
        let bytes = body(answer, TOKEN_BYTES, "its token").await?;
        token(&bytes).ok_or_else(|| Refusal::Never(NO_TOKEN.to_owned()))
    }
}

/// Reads the complete body of a short response.
async fn body(answer: Response<Incoming>, max: usize, what: &str) -> Result<Bytes, Refusal> {
    let status = answer.status();
    if !status.is_success() {
        return Err(match refusal(status) {
            Refusal::Later(why) => Refusal::Later(format!("{what}: {why}")),
            Refusal::Never(why) => Refusal::Never(format!("{what}: {why}")),
        });
    }
    let later = |error| Refusal::Later(format!("{what}: {error}"));
    let whole = Limited::new(answer.into_body(), max).collect();
    let slow = || Refusal::Later(format!("{what} did not arrive within {ANSWER_TIMEOUT:?}"));
    let whole = tokio::time::timeout(ANSWER_TIMEOUT, whole).await.map_err(|_| slow())?;
    Ok(whole.map_err(later)?.to_bytes())
}
