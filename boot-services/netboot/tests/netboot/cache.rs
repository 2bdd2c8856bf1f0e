//! Tests files of other servers through the box: a real origin that is slow, interrupts responses
//! and sends wrong data, and real clients at the boot port.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use artifact_cache::{Cache, CacheAccess, Checksum, Digest, HttpOrigin, Readers, RemoteFile, fake};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream;
use hyper_util::client::legacy::connect::HttpConnector;
use netboot::http::{Downloads, HttpService, cached_router, serve};
use netboot::{Files, Services};
use stdx::testing::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const SIZE: usize = 1 << 20;
/// Bytes that the origin has sent when it pauses.
const PAUSE: usize = 300 << 10;
const CHUNK: usize = 10_000;

/// Content that differs at every offset.
static FILE: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..SIZE as u32 / 4).flat_map(u32::to_be_bytes).collect());

fn file() -> &'static [u8] {
    &FILE
}

fn right() -> Option<Checksum> {
    Some(Checksum::Sha256(Digest::of(file())))
}

/// File server that sends up to a limit, and interrupts its first response at a given offset.
struct Origin {
    address: SocketAddr,
    state: Arc<OriginState>,
}

struct OriginState {
    /// Offset of the first byte of each request.
    firsts: Mutex<Vec<usize>>,
    /// Offset up to which the origin sends.
    let_through: watch::Sender<usize>,
    /// Offset at which the first response breaks off.
    breaks_at: Option<usize>,
}

impl Origin {
    async fn start(let_through: usize, breaks_at: Option<usize>) -> Self {
        let (let_through, _) = watch::channel(let_through);
        let state = Arc::new(OriginState { firsts: Mutex::default(), let_through, breaks_at });
        let router = Router::new()
            .route("/debian.raw", get(send))
            .route("/away", get(async || StatusCode::FORBIDDEN))
            .route("/to/{name}", get(redirect))
            .with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, router, CancellationToken::new()));
        Self { address, state }
    }

    fn wanted(&self, name: &str, checksum: Option<Checksum>) -> RemoteFile {
        RemoteFile { url: format!("http://{}/{name}", self.address), checksum }
    }

    fn firsts(&self) -> Vec<usize> {
        self.state.firsts.lock().unwrap().clone()
    }
}

async fn send(State(state): State<Arc<OriginState>>, headers: HeaderMap) -> Response {
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let first = range.map_or(0, |range| {
        range.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap().parse().unwrap()
    });
    let is_first = {
        let mut firsts = state.firsts.lock().unwrap();
        firsts.push(first);
        firsts.len() == 1
    };
    let breaks_at = state.breaks_at.filter(|_| is_first);
    let go = state.let_through.subscribe();
    let body = stream::try_unfold((first, go), move |(at, mut go)| async move {
        if breaks_at.is_some_and(|end| at >= end) {
            return Err(std::io::Error::other("broken off"));
        }
        if at == SIZE {
            return Ok(None);
        }
        let end = (at + CHUNK).min(SIZE);
        go.wait_for(|open| *open >= end).await.map_err(std::io::Error::other)?;
        Ok(Some((Bytes::copy_from_slice(&file()[at..end]), (end, go))))
    });
    let status = if first > 0 { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let headers = [
        (header::CONTENT_LENGTH, (SIZE - first).to_string()),
        (header::CONTENT_RANGE, format!("bytes {first}-{}/{SIZE}", SIZE - 1)),
        (header::ETAG, "\"v1\"".to_owned()),
    ];
    (status, headers, Body::from_stream(body)).into_response()
}

/// Access control: only this address may read the file.
struct Only(IpAddr);

impl Readers for Only {
    fn may_read(&self, peer: IpAddr, _: &RemoteFile) -> bool {
        peer == self.0
    }
}

/// Redirects to the URL in the query.
async fn redirect(axum::extract::RawQuery(query): axum::extract::RawQuery) -> Response {
    (StatusCode::FOUND, [(header::LOCATION, query.unwrap_or_default())]).into_response()
}

/// Starts the boot port, with a cache in `folder` that offers one file.
async fn start_box(folder: &Path, wanted: &RemoteFile) -> (SocketAddr, Cache) {
    start_box_for(folder, wanted, [127, 0, 0, 1].into()).await
}

/// Starts the boot port for a machine with this address.
async fn start_box_for(folder: &Path, wanted: &RemoteFile, reader: IpAddr) -> (SocketAddr, Cache) {
    let origin = Arc::new(HttpOrigin::new(HttpConnector::new()));
    let cache = fake::cache(folder, origin).unwrap();
    cache.offer([wanted]);
    let files = Files::new(folder.join("artifacts"));
    let services = Services { files, plans: Arc::new(()), observer: Arc::new(()) };
    let access = CacheAccess::new(cache.clone(), Arc::new(Only(reader)));
    let router = cached_router(access.clone(), Arc::new(()));
    let downloads = Downloads::boot(services).with_cache(Some(access));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = HttpService::with_downloads(router, downloads);
    tokio::spawn(serve(listener, service, CancellationToken::new()));
    (address, cache)
}

/// Client that reads its response in small steps.
struct Client {
    stream: TcpStream,
    head: String,
    body: Vec<u8>,
}

impl Client {
    async fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: box\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        let reading = async {
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("an answer begins in time");
        let head = String::from_utf8(head).unwrap().to_lowercase();
        Self { stream, head, body: Vec::new() }
    }

    async fn get(address: SocketAddr, wanted: &RemoteFile) -> Self {
        Self::ask(address, "GET", &wanted.path(), "").await
    }

    fn status(&self) -> &str {
        &self.head[9..12]
    }

    /// Reads until `length` bytes of the body have arrived.
    async fn has(&mut self, length: usize) {
        let reading = async {
            while self.body.len() < length {
                assert!(self.stream.read_buf(&mut self.body).await.unwrap() > 0, "it ended");
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the body comes in time");
    }

    /// Reads to the end of the connection, also when it is cut off.
    async fn rest(mut self) -> Vec<u8> {
        let reading = self.stream.read_to_end(&mut self.body);
        let _ = tokio::time::timeout(PATIENCE, reading).await.expect("the answer ends in time");
        self.body
    }
}

#[tokio::test]
async fn two_machines_share_a_download_and_read_it_as_it_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::start(PAUSE, Some(2 * PAUSE)).await;
    let wanted = origin.wanted("debian.raw?token=secret", right());
    assert!(wanted.path().ends_with("/debian.raw"));
    let (address, cache) = start_box(folder.path(), &wanted).await;

    let (mut one, mut two) =
        tokio::join!(Client::get(address, &wanted), Client::get(address, &wanted));
    let reached = PAUSE / CHUNK * CHUNK;
    tokio::join!(one.has(reached), two.has(reached));
    let range = format!("range: bytes={}-\r\n", SIZE - 1000);
    let late = tokio::spawn({
        let path = wanted.path();
        async move { Client::ask(address, "GET", &path, &range).await }
    });
    let (_, progress) = cache.downloads().pop().unwrap();
    assert_eq!((progress.received, progress.total), (reached as u64, Some(SIZE as u64)));
    assert!(cache.list().is_empty(), "nothing is whole yet");

    origin.state.let_through.send_replace(SIZE);
    let late = late.await.unwrap();
    assert_eq!(late.status(), "206", "{}", late.head);
    let tag = format!("etag: \"{}\"", Digest::of(file()));
    assert!(one.head.contains(&tag) && late.head.contains(&tag), "{}", one.head);
    assert_eq!(late.rest().await, file()[SIZE - 1000..]);
    assert_eq!(one.rest().await, file());
    assert_eq!(two.rest().await, file());
    let firsts = origin.firsts();
    assert!(firsts.len() == 2 && firsts[1] >= reached, "read once, in two parts: {firsts:?}");

    // A complete file is served like any other file.
    let again = Client::ask(address, "GET", &wanted.path(), "range: bytes=-10\r\n").await;
    assert!(again.status() == "206" && again.head.contains(&tag), "{}", again.head);
    assert_eq!(again.rest().await, file()[SIZE - 10..]);
    let head = Client::ask(address, "HEAD", &wanted.path(), "").await;
    assert!(head.head.contains(&format!("content-length: {SIZE}")), "{}", head.head);
    assert_eq!(origin.firsts().len(), 2);
}

#[tokio::test]
async fn a_wrong_file_is_nobodys_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::start(PAUSE, None).await;
    let wrong = Some(Checksum::Sha256(Digest::of(b"another")));
    let wanted = origin.wanted("debian.raw", wrong);
    let (address, _) = start_box(folder.path(), &wanted).await;
    let mut early = Client::get(address, &wanted).await;
    early.has(CHUNK).await;
    assert!(early.head.contains(&format!("content-length: {SIZE}")), "{}", early.head);
    origin.state.let_through.send_replace(SIZE);
    assert!(early.rest().await.len() < SIZE, "it is broken off");

    let late = Client::get(address, &wanted).await;
    assert_eq!(late.status(), "424");
    let body = String::from_utf8(late.rest().await).unwrap();
    let sentence = format!("{} has the checksum {}, which", wanted.url, Digest::of(file()));
    assert!(body.contains(&sentence), "{body}");
    assert_eq!(origin.firsts(), [0], "it is not asked again at once");
}

#[tokio::test]
async fn an_origin_that_refuses_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::start(SIZE, None).await;
    let wanted = origin.wanted("away?token=secret", None);
    let (address, _) = start_box(folder.path(), &wanted).await;
    let answer = Client::get(address, &wanted).await;
    assert_eq!(answer.status(), "424");
    let body = String::from_utf8(answer.rest().await).unwrap();
    let url = format!("http://{}/away", origin.address);
    assert_eq!(body, format!("could not fetch {url}: the server responded with 403 Forbidden\n"));
}

#[tokio::test]
async fn a_file_is_fetched_from_where_redirects_lead_and_not_without_end() {
    let origin = Origin::start(SIZE, None).await;
    for (location, result) in [
        ("/debian.raw?from=http://mirror.example/debian.raw", Ok(())),
        ("../debian.raw", Ok(())),
        ("/to/b?/debian.raw", Ok(())),
        ("", Err("it redirects more than 10 times")),
        ("ftp://a/b?token=secret", Err("it redirects to ftp://a/b, which is neither http nor")),
        ("http://me:secret@a/b", Err("it redirects to http://a/b, with a user name")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let wanted = origin.wanted(&format!("to/a?{location}"), None);
        let (address, _) = start_box(folder.path(), &wanted).await;
        let body = Client::get(address, &wanted).await.rest().await;
        match result {
            Ok(()) => assert!(body == file(), "{location}"),
            Err(words) => {
                let body = String::from_utf8(body).unwrap();
                assert!(body.contains(words) && !body.contains("secret"), "{location}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn a_restart_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::start(PAUSE, None).await;
    let wanted = origin.wanted("debian.raw", None);
    // A box in its own runtime, which ends with all its tasks.
    let first = tokio::runtime::Runtime::new().unwrap();
    let (path, asked) = (folder.path().to_owned(), wanted.clone());
    let running = first.spawn(async move {
        let (address, _) = start_box(&path, &asked).await;
        Client::get(address, &asked).await.has(PAUSE / 2).await;
    });
    running.await.unwrap();
    first.shutdown_background();

    origin.state.let_through.send_replace(SIZE);
    let (address, _) = start_box(folder.path(), &wanted).await;
    assert_eq!(Client::get(address, &wanted).await.rest().await, file());
    let firsts = origin.firsts();
    assert!(firsts.len() == 2 && firsts[1] >= PAUSE / 2, "{firsts:?}");
}

#[tokio::test]
async fn only_what_is_offered_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::start(SIZE, None).await;
    let wanted = origin.wanted("debian.raw", right());
    let (address, cache) = start_box(folder.path(), &wanted).await;
    std::fs::write(folder.path().join("secret"), b"secret").unwrap();
    let (key, other) = (wanted.key(), origin.wanted("other.raw", None));
    for path in [
        "/cache/../secret".to_owned(),
        "/cache/..%2fsecret".to_owned(),
        format!("/cache/{key}/../secret"),
        format!("/cache/{key}/..%2f..%2fsecret"),
        format!("/cache/{key}/"),
        format!("/cache/{key}"),
        format!("/cache/{key}/other.raw"),
        "/cache/blobs/sha256".to_owned(),
        other.path(),
    ] {
        assert_eq!(Client::ask(address, "GET", &path, "").await.status(), "404", "{path}");
    }
    assert_eq!(Client::get(address, &wanted).await.rest().await, file());
    cache.withdraw([&wanted]);
    assert_eq!(Client::get(address, &wanted).await.status(), "404", "no longer offered");
}

#[tokio::test]
async fn a_file_is_given_to_the_machines_that_need_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::start(SIZE, None).await;
    let wanted = origin.wanted("debian.raw", right());
    let (address, cache) = start_box_for(folder.path(), &wanted, [127, 0, 0, 2].into()).await;
    assert_eq!(Client::get(address, &wanted).await.status(), "404", "it is not fetched for others");
    assert!(origin.firsts().is_empty());
    cache.fetch(&wanted).await.ended().await.unwrap();
    assert_eq!(Client::get(address, &wanted).await.status(), "404", "a whole file");
}
