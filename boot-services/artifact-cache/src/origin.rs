//! Origins of files: HTTP servers, over connections that the caller provides.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::{AsciiSet, percent_encode};
use url::Url;

use super::Digest;
use super::registry::{self, Credentials};
use super::remote_file::UPLOAD_SCHEME;

pub mod connector;
mod registry_client;

/// Reason why an uploaded file that is not in the cache cannot be fetched.
const LOST: &str = "it was uploaded, and the box does not have it any more: upload it again";
/// Maximum redirects that one request follows.
const MAX_REDIRECTS: usize = 10;
/// Status codes that redirect (RFC 9110 section 15.4); 304 and 305 do not.
const REDIRECTS: [StatusCode; 6] = [
    StatusCode::MULTIPLE_CHOICES,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];
/// Set of characters to encode in a `Location` before parsing: no ASCII characters, so only other
/// bytes are encoded.
const OTHERS: AsciiSet = AsciiSet::EMPTY;
/// Timeout of an origin's response. A short body, such as a manifest, must also be complete by
/// then.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time of [`reach`], so that a check of several servers takes seconds, not minutes.
const REACH_TIMEOUT: Duration = Duration::from_secs(5);

/// Response of an origin: a file, or the rest of a file.
pub struct Part {
    /// Offset of the first byte: the requested offset, or 0.
    pub first: u64,
    /// Size of the whole file in bytes, if the origin reports it.
    pub total: Option<u64>,
    /// Entity tag of the file, if it is a strong one.
    pub tag: Option<String>,
    /// SHA-256 of the whole file, as the origin reports it. The cache checks it at the end.
    pub digest: Option<Digest>,
    /// Bytes of the file, from offset `first`.
    pub body: Pin<Box<dyn Stream<Item = Result<Bytes, String>> + Send>>,
}

/// Reason why an origin did not send a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A later attempt may succeed: no connection, or an error of the server.
    Later(String),
    /// A later attempt will fail too: not found, not allowed, or not understood.
    Never(String),
}

/// Error of a connector that does not permit connections to an address: a later attempt will fail
/// too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RefusedAddress(pub String);

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Part, Refusal>> + Send + 'a>>;

/// Source from which the cache downloads files.
pub trait Origin: Send + Sync + 'static {
    /// Requests the file at `url` from offset `first`, on condition that its entity tag is still
    /// `tag`. If the tag differs, or the server does not support ranges, the response begins at
    /// offset 0.
    fn part<'a>(&'a self, url: &'a str, first: u64, tag: Option<&'a str>) -> Answer<'a>;
}

/// Requests the file at `url`, and drops the connection after the head of the response: many
/// servers refuse HEAD.
///
/// # Errors
/// The reason as a clause without the URL.
pub async fn reach(origin: &dyn Origin, url: &str) -> Result<(), String> {
    match tokio::time::timeout(REACH_TIMEOUT, origin.part(url, 0, None)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(Refusal::Later(why) | Refusal::Never(why))) => Err(why),
        Err(_) => Err(format!("no response within {REACH_TIMEOUT:?}")),
    }
}

/// HTTP client for `http` and `https` URLs, and for `oci` URLs of registries ([`registry`]).
pub struct HttpOrigin<C> {
    client: Client<C, Empty<Bytes>>,
    pub(super) plain_registries: BTreeSet<String>,
    pub(super) credentials: BTreeMap<String, Credentials>,
}

impl<C: Connect + Clone + Send + Sync + 'static> HttpOrigin<C> {
    /// Creates a client that connects by `connector`: hyper-util's `HttpConnector`, or
    /// hyper-rustls' connector with the root certificates that the box trusts.
    pub fn new(connector: C) -> Self {
        let client =
            Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Self { client, plain_registries: BTreeSet::new(), credentials: BTreeMap::new() }
    }

    /// Sets the registries (`host` or `host:port`) that are requested over `http`, not `https`.
    #[must_use]
    pub fn with_plain_registries(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.plain_registries = hosts.into_iter().collect();
        self
    }

    /// Sets the credentials for registries that require a user (`host` or `host:port`).
    #[must_use]
    pub fn with_credentials(mut self, credentials: BTreeMap<String, Credentials>) -> Self {
        self.credentials = credentials;
        self
    }

    /// Sends a GET with `fields` and follows redirects. `Authorization` is sent to the first server
    /// only.
    pub(super) async fn get(
        &self,
        url: &str,
        mut fields: HeaderMap,
    ) -> Result<Response<Incoming>, Refusal> {
        let never = |why: &dyn std::fmt::Display| Refusal::Never(why.to_string());
        let mut uri: Uri = url.parse().map_err(|error| never(&error))?;
        fields.insert(header::USER_AGENT, HeaderValue::from_static("tinbox"));
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::get(uri.clone());
            if let Some(host) = uri.authority() {
                request = request.header(header::HOST, host.as_str());
            }
            let mut request = request.body(Empty::new()).map_err(|error| never(&error))?;
            request.headers_mut().extend(fields.clone());
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.client.request(request)).await;
            let answer = answer
                .map_err(|_| Refusal::Later(format!("no response within {ANSWER_TIMEOUT:?}")))?
                .map_err(|error| failed(&error))?;
            if !REDIRECTS.contains(&answer.status()) {
                return Ok(answer);
            }
            let location = answer.headers().get(header::LOCATION);
            let location = location.ok_or_else(|| never(&"it redirects without a Location"))?;
            let to = redirected(&uri, location.as_bytes())?;
            if to.authority() != uri.authority() {
                fields.remove(header::AUTHORIZATION);
            }
            uri = to;
        }
        Err(never(&format!("it redirects more than {MAX_REDIRECTS} times")))
    }
}

/// Returns the refusal for an error of the client.
fn failed(error: &(dyn std::error::Error + 'static)) -> Refusal {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let refused = causes.into_iter().find_map(|cause| cause.downcast_ref::<RefusedAddress>());
    match refused {
        Some(refused) => Refusal::Never(refused.to_string()),
        None => Refusal::Later(stdx::chain(error)),
    }
}

/// Resolves the `Location` of a response from `from` (RFC 9110 section 10.2.2, RFC 3986 section 5).
fn redirected(from: &Uri, location: &[u8]) -> Result<Uri, Refusal> {
    // Bytes beyond ASCII belong to a path that the server did not encode.
    let encoded = percent_encode(location, &OTHERS).to_string();
    let base = Url::parse(&from.to_string());
    let Ok(mut to) = base.and_then(|base| base.join(&encoded)) else {
        return Err(Refusal::Never("it redirects to an invalid URL".to_owned()));
    };
    to.set_fragment(None);
    let refuse = |why: &str| {
        let place = super::shown(to.as_str());
        Err(Refusal::Never(format!("it redirects to {place}, {why}")))
    };
    if !matches!(to.scheme(), "http" | "https") {
        return refuse("which is neither http nor https");
    }
    if from.scheme_str() == Some("https") && to.scheme() != "https" {
        return refuse("from https to http, which is not secure");
    }
    if !to.username().is_empty() || to.password().is_some() {
        return refuse("with a user name, which is not supported");
    }
    to.as_str().parse().or_else(|_| refuse("which is not a URL"))
}

impl<C: Connect + Clone + Send + Sync + 'static> Origin for HttpOrigin<C> {
    fn part<'a>(&'a self, url: &'a str, first: u64, tag: Option<&'a str>) -> Answer<'a> {
        if url.starts_with(UPLOAD_SCHEME) {
            return Box::pin(async { Err(Refusal::Never(LOST.to_owned())) });
        }
        if let Some(reference) = url.strip_prefix(registry::BLOB_SCHEME) {
            return Box::pin(self.blob_part(reference, first, tag));
        }
        match url.strip_prefix(registry::SCHEME) {
            Some(reference) => Box::pin(self.registry_part(reference, first, tag)),
            None => Box::pin(self.file_part(url, first, tag)),
        }
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> HttpOrigin<C> {
    async fn file_part(&self, url: &str, first: u64, tag: Option<&str>) -> Result<Part, Refusal> {
        let mut fields = HeaderMap::new();
        if first > 0 {
            put(&mut fields, header::RANGE, &format!("bytes={first}-"))?;
            if let Some(tag) = tag {
                put(&mut fields, header::IF_RANGE, tag)?;
            }
        }
        let answer = self.get(url, fields).await?;
        if first > 0 && answer.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            // The stored part is longer than the file is now.
            return part(self.get(url, HeaderMap::new()).await?, 0);
        }
        part(answer, first)
    }
}

/// Adds a field whose value may come from another system.
pub(super) fn put(fields: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Refusal> {
    let never = |_| Refusal::Never(format!("the header {name} cannot have this value"));
    fields.insert(&name, HeaderValue::from_str(value).map_err(never)?);
    Ok(())
}

/// Returns the file in the response to a request for the bytes from `first`.
pub(super) fn part(answer: Response<Incoming>, first: u64) -> Result<Part, Refusal> {
    let text = |name| answer.headers().get(name).and_then(|it| it.to_str().ok());
    let length = text(header::CONTENT_LENGTH).and_then(|it| it.parse::<u64>().ok());
    let (first, total) = match answer.status() {
        StatusCode::OK => (0, length),
        StatusCode::PARTIAL_CONTENT => {
            content_range(text(header::CONTENT_RANGE).unwrap_or_default())
                .filter(|(begins, _)| *begins == first)
                .ok_or_else(|| Refusal::Never("the server sent another range".to_owned()))?
        }
        status => return Err(refusal(status)),
    };
    let tag = text(header::ETAG).filter(|tag| tag.starts_with('"')).map(str::to_owned);
    let body = answer.into_body().into_data_stream();
    let body =
        futures_util::StreamExt::map(body, |chunk| chunk.map_err(|error| stdx::chain(&error)));
    Ok(Part { first, total, tag, digest: None, body: Box::pin(body) })
}

/// Returns the refusal for a status other than success.
pub(super) fn refusal(status: StatusCode) -> Refusal {
    let later = status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    let why = format!("the server responded with {status}");
    if later { Refusal::Later(why) } else { Refusal::Never(why) }
}

/// Parses `bytes 10-99/100` or `bytes 10-99/*`: first byte, and size of the file.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let first = range.split_once('-')?.0.trim().parse().ok()?;
    Some((first, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests;
