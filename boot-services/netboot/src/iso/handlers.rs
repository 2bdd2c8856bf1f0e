//! HTTP handlers for media, which check that the client may read a medium, and insert the machine's
//! arguments.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream;

use super::arguments::arguments;
use super::magic;
use super::mounts::Mounts;
use super::original::{Original, Placeholders};
use super::patch::{Patch, Replacement};
use crate::files::ArtifactFolder;
use crate::files::range::{self, Part};
use crate::plan::{Medium, Owner};
use crate::{Error, Services};

/// Bytes that are read from disk at a time. Each connection holds one such buffer.
const CHUNK: u64 = 128 << 10;

/// State of the media routes.
pub(crate) struct MediaRoutes {
    services: Services,
    placeholders: Placeholders,
    mounts: Mounts,
}

/// Reason why a machine gets no medium.
enum MediumError {
    /// Unknown machine, or unknown file.
    Unknown,
    Unreadable(io::Error),
    Unpatched {
        hardware: String,
        error: Error,
    },
}

impl From<io::Error> for MediumError {
    /// Maps errors that the client's name caused to `Unknown`: the name leads through a file, or no
    /// file can have it.
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
        match error.kind() {
            NotFound | NotADirectory | InvalidFilename => Self::Unknown,
            _ => Self::Unreadable(error),
        }
    }
}

/// Client, path and headers of one request.
#[derive(Clone, Copy)]
pub(crate) struct MediumRequest<'a> {
    pub(crate) peer: IpAddr,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

/// Returns a unified kernel image for TFTP, which sends from memory. `path` is the requested name,
/// `[<machine>/]<name>.efi` ([`is_unified`]). Without a machine in the name, the address `peer`
/// identifies the machine. `read` returns the file with a name, which is common to all machines;
/// the patch is specific to this machine.
///
/// # Errors
/// The machine is unknown, or its arguments cannot be put into the file, which is logged
/// (`NotFound`); or `read` fails.
pub async fn load_unified(
    services: &Services,
    path: &str,
    peer: IpAddr,
    read: impl AsyncFnOnce(&str) -> io::Result<Arc<[u8]>>,
) -> io::Result<(Arc<[u8]>, Patch)> {
    let (machine, name) = path.trim_start_matches('/').rsplit_once('/').unwrap_or(("", path));
    let machine = machine.rsplit('/').next().unwrap_or(machine);
    let medium = medium_for(services, machine, peer).ok_or(io::ErrorKind::NotFound)?;
    let original = read(name).await?;
    let searched = Arc::clone(&original);
    let search = move || magic::places(&searched[..], magic::SEARCHED);
    let places = tokio::task::spawn_blocking(search).await.map_err(io::Error::other)??;
    match patch(&medium, name, places.into()) {
        Ok(patch) => Ok((original, patch)),
        Err(error) => {
            tracing::error!(hardware = medium.hardware, name, %error, "no medium is served");
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// Returns the medium of `machine`, or of the machine at `peer` if `machine` is empty. `None` if
/// `peer` may not read the medium.
fn medium_for(services: &Services, machine: &str, peer: IpAddr) -> Option<Medium> {
    let (plans, reader) = (&services.plans, services.reader(peer));
    let medium = if machine.is_empty() {
        plans.medium(Owner::Address(peer))
    } else {
        // A text that parses as a MAC address may still be an instance id.
        let by_mac = machine.parse().ok().and_then(|mac| plans.medium(Owner::Mac(mac)));
        by_mac.or_else(|| plans.medium(Owner::Instance(machine)))
    };
    medium.filter(|medium| medium.is_for(reader))
}

/// Returns the patch that writes a machine's arguments at the offsets `places` of a file.
fn patch(medium: &Medium, name: &str, places: Arc<[u64]>) -> Result<Patch, Error> {
    let text = Replacement::new(&arguments(medium))?;
    if places.is_empty() {
        return Err(Error::NoPlace { name: name.to_owned() });
    }
    Ok(Patch::new(places, text))
}

/// Returns the routes of this module.
pub(crate) fn routes(media: Arc<MediaRoutes>) -> Router {
    Router::new().route("/iso/{*path}", get(iso)).route("/uki/{*path}", get(uki)).with_state(media)
}

type Shared = State<Arc<MediaRoutes>>;
type Client = ConnectInfo<SocketAddr>;

async fn iso(
    State(media): Shared,
    ConnectInfo(client): Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let request = MediumRequest { peer: client.ip().to_canonical(), uri: &uri, headers: &headers };
    let Some((folders, file)) = path.rsplit_once('/').filter(|(_, file)| file.ends_with(".iso"))
    else {
        return media.refused(request, StatusCode::NOT_FOUND, String::new());
    };
    let (folders, machine) = folders.rsplit_once('/').unwrap_or(("", folders));
    let name = [folders, file].join("/");
    media.answer(ArtifactFolder::Iso, machine, name.trim_start_matches('/'), request).await
}

async fn uki(
    State(media): Shared,
    ConnectInfo(client): Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let request = MediumRequest { peer: client.ip().to_canonical(), uri: &uri, headers: &headers };
    media.unified(&path, request).await
}

/// Returns true if a loader's path, as DHCP sends it, names the agent OS itself:
/// `[<mac>/]agent-<arch>.efi`.
pub fn is_unified(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("agent-") && name.ends_with(".efi")
}

impl MediaRoutes {
    pub(crate) fn new(services: Services) -> Self {
        let mounts = Mounts::new(Arc::clone(&services.observer));
        Self { services, placeholders: Placeholders::default(), mounts }
    }

    /// Serves a unified kernel image for the machine that `path` names, or else for the client.
    pub(crate) async fn unified(&self, path: &str, request: MediumRequest<'_>) -> Response {
        let (machine, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !name.ends_with(".efi") {
            return self.refused(request, StatusCode::NOT_FOUND, String::new());
        }
        self.answer(ArtifactFolder::Agent, machine, name, request).await
    }

    async fn answer(
        &self,
        folder: ArtifactFolder,
        machine: &str,
        name: &str,
        request: MediumRequest<'_>,
    ) -> Response {
        match self.find(folder, machine, name, request.peer).await {
            Ok((original, patch)) => self.patched(original, patch, request),
            Err(MediumError::Unknown) => {
                self.refused(request, StatusCode::NOT_FOUND, String::new())
            }
            Err(MediumError::Unreadable(error)) => {
                tracing::warn!(path = request.uri.path(), %error, "a medium could not be read");
                self.refused(request, StatusCode::INTERNAL_SERVER_ERROR, String::new())
            }
            Err(MediumError::Unpatched { hardware, error }) => {
                let path = request.uri.path();
                tracing::error!(%hardware, path, %error, "no medium is served");
                let text = format!("{hardware}: {error}\n");
                self.refused(request, StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        }
    }

    /// Returns the file with this name and the patch for one machine.
    async fn find(
        &self,
        folder: ArtifactFolder,
        machine: &str,
        name: &str,
        peer: IpAddr,
    ) -> Result<(Original, Patch), MediumError> {
        let medium = medium_for(&self.services, machine, peer).ok_or(MediumError::Unknown)?;
        let chosen = medium.iso.clone().filter(|_| folder == ArtifactFolder::Iso);
        let path = chosen.or_else(|| self.services.files.path(folder, name));
        let path = path.ok_or(MediumError::Unknown)?;
        let opened = tokio::task::spawn_blocking(move || Original::open(path)).await;
        let original =
            opened.map_err(|error| MediumError::Unreadable(io::Error::other(error)))??;
        let places = self.placeholders.places(&original).await?;
        let unpatched = |error| MediumError::Unpatched { hardware: medium.hardware.clone(), error };
        Ok((original, patch(&medium, name, places).map_err(unpatched)?))
    }

    fn refused(&self, request: MediumRequest<'_>, status: StatusCode, text: String) -> Response {
        self.mounts.ended(request.peer, request.uri.path(), status.as_u16(), 0, Instant::now());
        (status, text).into_response()
    }

    /// Returns the response to a GET. A HEAD gets the same response; its body is dropped unread.
    fn patched(&self, original: Original, patch: Patch, request: MediumRequest<'_>) -> Response {
        let size = original.size();
        let tag = format!("\"{}-{}\"", original.version, patch.digest());
        let text = |name: HeaderName| request.headers.get(name).and_then(|it| it.to_str().ok());
        if text(header::IF_NONE_MATCH).is_some_and(|known| matches(known, &tag)) {
            return with(self.empty(request, StatusCode::NOT_MODIFIED), header::ETAG, &tag);
        }
        // A range of another version, or of another machine's medium, is ignored.
        let current = text(header::IF_RANGE).is_none_or(|known| known.trim() == tag);
        let part = if current { range::part(text(header::RANGE), size) } else { Part::Whole };
        let (first, length, status) = match part {
            Part::Whole => (0, size, StatusCode::OK),
            Part::Bytes(first, last) => (first, last - first + 1, StatusCode::PARTIAL_CONTENT),
            Part::Unsatisfiable => {
                let response = self.empty(request, StatusCode::RANGE_NOT_SATISFIABLE);
                return with(response, header::CONTENT_RANGE, &format!("bytes */{size}"));
            }
        };
        let mut response = Response::new(body(original, patch, first, length));
        *response.status_mut() = status;
        // Recorded at the start: a medium is read in small parts, and the record has their sum.
        let path = request.uri.path();
        self.mounts.ended(request.peer, path, status.as_u16(), length, Instant::now());
        let response = with(response, header::CONTENT_TYPE, "application/octet-stream");
        let response = with(response, header::ACCEPT_RANGES, "bytes");
        let response = with(response, header::ETAG, &tag);
        // The medium carries the token with which the machine authenticates to the box.
        let response = with(response, header::CACHE_CONTROL, "private, no-cache");
        let response = with(response, header::CONTENT_LENGTH, &length.to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {first}-{}/{size}", first + length - 1);
            with(response, header::CONTENT_RANGE, &range)
        } else {
            response
        }
    }

    fn empty(&self, request: MediumRequest<'_>, status: StatusCode) -> Response {
        self.refused(request, status, String::new())
    }
}

/// Returns `length` bytes from offset `first`, one chunk at a time.
fn body(original: Original, patch: Patch, first: u64, length: u64) -> Body {
    let chunks = stream::try_unfold((first, length), move |(at, left)| {
        let (original, patch) = (original.clone(), patch.clone());
        async move {
            if left == 0 {
                return Ok::<_, io::Error>(None);
            }
            let length = left.min(CHUNK);
            let read = tokio::task::spawn_blocking(move || {
                // `length` is at most CHUNK, which fits every usize.
                let mut bytes = original.read(at, length as usize)?;
                patch.apply(at, &mut bytes);
                Ok::<_, io::Error>(bytes)
            });
            let bytes = read.await.map_err(io::Error::other)??;
            Ok(Some((Bytes::from(bytes), (at + length, left - length))))
        }
    });
    Body::from_stream(chunks)
}

/// Returns true if `known` has `tag` or is `*`, by weak comparison (RFC 9110 section 13.1.2).
fn matches(known: &str, tag: &str) -> bool {
    known.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    // Every value consists of digits, names and quotes that this file wrote.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}
