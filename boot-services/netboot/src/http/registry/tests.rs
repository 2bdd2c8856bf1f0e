//! Tests the registry's responses, with scripted registries as its upstream.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use artifact_cache::registry::{Document, Manifests, Mirror, Reference};
use artifact_cache::{Digest, Origin, Part, Refusal, fake};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::{RegistryRequest, read, registry_router};
use crate::{FetchEvent, Observer};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &[u8] = b"a layer of an image, which is some bytes long";

struct NoObserver;

impl Observer for NoObserver {
    fn fetched(&self, _: FetchEvent) {}
}

/// Registry with the objects that the test has stored.
#[derive(Default)]
struct Upstream {
    manifests: Mutex<BTreeMap<String, &'static [u8]>>,
    asked: AtomicUsize,
    away: AtomicBool,
    rotten: AtomicBool,
}

impl Upstream {
    fn put(&self, name: &str, manifest: &'static [u8]) -> Digest {
        self.manifests.lock().unwrap().insert(name.to_owned(), manifest);
        Digest::of(manifest)
    }

    fn refusal(&self) -> Option<Refusal> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.away.load(Ordering::SeqCst).then(|| Refusal::Later("no route to host".to_owned()))
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

impl Manifests for Upstream {
    fn manifest<'a>(&'a self, reference: &'a Reference) -> Boxed<'a, Document> {
        let refusal = self.refusal();
        let found = self.manifests.lock().unwrap().get(&reference.to_string()).copied();
        Box::pin(async move {
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
            let missing = || Refusal::Never("the server responded with 404 Not Found".to_owned());
            let bytes = Bytes::from_static(found.ok_or_else(missing)?);
            Ok(Document { bytes, media_type: INDEX.to_owned() })
        })
    }
}

impl Origin for Upstream {
    fn part<'a>(&'a self, url: &'a str, first: u64, _: Option<&'a str>) -> Boxed<'a, Part> {
        let refusal = self.refusal();
        let known = url.ends_with(&Digest::of(LAYER).to_string());
        let mut bytes = LAYER.to_vec();
        bytes[3] ^= u8::from(self.rotten.load(Ordering::SeqCst));
        Box::pin(async move {
            if let Some(refusal) = refusal.or((!known).then(|| Refusal::Never("404".to_owned()))) {
                return Err(refusal);
            }
            let rest = Bytes::from(bytes).slice(first as usize..);
            let body = Box::pin(futures_util::stream::iter([Ok(rest)]));
            Ok(Part { first, total: Some(LAYER.len() as u64), tag: None, digest: None, body })
        })
    }
}

struct Rack {
    upstream: Arc<Upstream>,
    mirror: Mirror,
    _folder: tempfile::TempDir,
}

impl Rack {
    /// Creates a box that offers `ghcr.io/a/b`, and all of `open.example`.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let upstream = Arc::new(Upstream::default());
        let cache = fake::cache(folder.path(), upstream.clone() as _).unwrap();
        let open = ["open.example".to_owned()];
        let mirror = Mirror::new(cache, folder.path(), upstream.clone() as _, open).unwrap();
        mirror.offer([Reference::of_image("ghcr.io/a/b:v1").unwrap()]);
        Self { upstream, mirror, _folder: folder }
    }

    async fn ask(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        ask(registry_router(Some(self.mirror.clone()), Arc::new(NoObserver)), method, path, fields)
            .await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[]).await
    }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the code and message of an error response.
    fn refusal(&self) -> (String, String) {
        let value: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        let text = |name: &str| value["errors"][0][name].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }
}

async fn ask(router: Router, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([10, 77, 0, 11], 4711))));
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    Answer { status: parts.status, headers: parts.headers, body }
}

#[test]
fn paths_name_images_as_mirrors_are_asked_for_them() {
    let digest = Digest::of(b"x");
    let manifest = |text: &str| Some(RegistryRequest::Manifest(Reference::parse(text).unwrap()));
    let blob = |text: &str| {
        Some(RegistryRequest::Blob(Reference::parse(&format!("{text}@{digest}")).unwrap(), digest))
    };
    let of = format!("/v2/ghcr.io/a/b/blobs/{digest}");
    let escaped = of.replace(':', "%3A");
    for (path, query, wanted) in [
        ("/v2/ghcr.io/a/b/manifests/v1", None, manifest("ghcr.io/a/b:v1")),
        ("/v2/a/b/manifests/v1", Some("ns=ghcr.io"), manifest("ghcr.io/a/b:v1")),
        ("/v2/a/b/manifests/v1", Some("x=y&ns=rack%3A5000"), manifest("rack:5000/a/b:v1")),
        ("/v2/library/alpine/manifests/3", None, manifest("docker.io/library/alpine:3")),
        ("/v2/alpine/manifests/3", None, manifest("docker.io/library/alpine:3")),
        ("/v2/rack:5000/a/manifests/v1", None, manifest("rack:5000/a:v1")),
        ("/v2/manifests/manifests/blobs", None, manifest("docker.io/library/manifests:blobs")),
        (&of, None, blob("ghcr.io/a/b")),
        (&escaped, None, blob("ghcr.io/a/b")),
        ("/v2/ghcr.io/a/b/blobs/v1", None, None),
        ("/v2/ghcr.io/a/../b/manifests/v1", None, None),
        ("/v2/ghcr.io/a/b/manifests/", None, None),
        ("/v2/ghcr.io/a/b/tags/list", None, None),
        ("/v2/_catalog", None, None),
        ("/v2/a/manifests/v1", Some("ns=%2f%2e%2e"), None),
        ("/v2/%ff/manifests/v1", None, None),
    ] {
        assert_eq!(read(path, query).ok(), wanted, "{path} {query:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_manifest_is_told_as_its_registry_has_it() {
    let rack = Rack::new();
    let digest = rack.upstream.put("ghcr.io/a/b:v1", b"{\"manifests\": []}").to_string();
    let whole = rack.get("/v2/ghcr.io/a/b/manifests/v1").await;
    assert_eq!((whole.status, &*whole.body), (StatusCode::OK, &b"{\"manifests\": []}"[..]));
    assert_eq!(whole.header("content-type"), INDEX);
    assert_eq!(whole.header("docker-content-digest"), digest);
    assert_eq!(whole.header("docker-distribution-api-version"), "registry/2.0");
    let head = rack.ask("HEAD", "/v2/a/b/manifests/v1?ns=ghcr.io", &[]).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(
        (head.header("content-length"), head.header("docker-content-digest")),
        ("17", &*digest)
    );
    let by_digest = rack.get(&format!("/v2/ghcr.io/a/b/manifests/{digest}")).await;
    assert_eq!(by_digest.body, whole.body);
    assert_eq!(rack.upstream.asked.load(Ordering::SeqCst), 1, "once for all of these");
}

#[tokio::test(start_paused = true)]
async fn a_tag_is_asked_for_again_and_remembered_while_its_registry_is_away() {
    let rack = Rack::new();
    rack.upstream.put("ghcr.io/a/b:v1", b"{\"one\":1}");
    rack.get("/v2/ghcr.io/a/b/manifests/v1").await;
    rack.upstream.put("ghcr.io/a/b:v1", b"{\"two\":2}");
    let early = rack.get("/v2/ghcr.io/a/b/manifests/v1").await;
    assert_eq!(&*early.body, b"{\"one\":1}");
    tokio::time::advance(Duration::from_secs(31)).await;
    let late = rack.get("/v2/ghcr.io/a/b/manifests/v1").await;
    assert_eq!(&*late.body, b"{\"two\":2}");
    rack.upstream.away.store(true, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(31)).await;
    let away = rack.get("/v2/ghcr.io/a/b/manifests/v1").await;
    assert_eq!((away.status, &*away.body), (StatusCode::OK, &b"{\"two\":2}"[..]));
}

#[tokio::test]
async fn a_blob_is_fetched_once_checked_and_served_in_ranges() {
    let rack = Rack::new();
    let digest = Digest::of(LAYER).to_string();
    let path = format!("/v2/ghcr.io/a/b/blobs/{digest}");
    let whole = rack.get(&path).await;
    assert_eq!((whole.status, &*whole.body), (StatusCode::OK, LAYER));
    assert_eq!(whole.header("docker-content-digest"), digest);
    rack.upstream.away.store(true, Ordering::SeqCst);
    let part = rack.ask("GET", &path, &[("range", "bytes=2-6")]).await;
    assert_eq!((part.status, &*part.body), (StatusCode::PARTIAL_CONTENT, &LAYER[2..7]));
    let head = rack.ask("HEAD", &path, &[]).await;
    assert_eq!((head.status, head.header("content-length")), (StatusCode::OK, "45"));
    assert_eq!(rack.upstream.asked.load(Ordering::SeqCst), 1);

    let rotten = Rack::new();
    rotten.upstream.rotten.store(true, Ordering::SeqCst);
    let broken = rotten.get(&path).await;
    assert_ne!(&*broken.body, LAYER, "a wrong layer is not taken for a whole one");
    assert!(broken.body.len() < LAYER.len() || !broken.status.is_success());
}

#[tokio::test]
async fn every_refusal_has_its_code_and_its_sentence() {
    let rack = Rack::new();
    rack.upstream.put("open.example/x:v1", b"{}");
    assert_eq!(rack.get("/v2/open.example/x/manifests/v1").await.status, StatusCode::OK);
    assert_eq!(rack.get("/v2/").await.status, StatusCode::OK);
    let unknown = format!("/v2/ghcr.io/a/b/blobs/{}", Digest::of(b"unknown"));
    for (method, path, status, code, words) in [
        (
            "GET",
            "/v2/ghcr.io/a/other/manifests/v1",
            403,
            "DENIED",
            "no workflow needs ghcr.io/a/other:v1",
        ),
        (
            "GET",
            "/v2/ghcr.io/a/b/manifests/v2",
            404,
            "MANIFEST_UNKNOWN",
            "the server responded with 404",
        ),
        ("GET", &unknown, 404, "BLOB_UNKNOWN", "could not fetch"),
        ("GET", "/v2/ghcr.io/a/b/blobs/latest", 400, "DIGEST_INVALID", "not a digest"),
        ("GET", "/v2/ghcr.io/A/b/manifests/v1", 400, "NAME_INVALID", "lower-case"),
        ("GET", "/v2/_catalog", 404, "UNSUPPORTED", "no lists"),
        ("PUT", "/v2/ghcr.io/a/b/manifests/v1", 405, "UNSUPPORTED", "read-only"),
    ] {
        let answer = rack.ask(method, path, &[]).await;
        let (got, message) = answer.refusal();
        assert_eq!((answer.status.as_u16(), got.as_str()), (status, code), "{path}: {message}");
        assert!(message.contains(words), "{path}: {message}");
    }
    let none = registry_router(None, Arc::new(NoObserver));
    let refused = ask(none, "GET", "/v2/ghcr.io/a/b/manifests/v1", &[]).await;
    assert!(refused.refusal().1.contains("no [images]"));
}
