//! Functions for the fuzz targets: readers of an input, and requests to an HTTP service without a
//! socket.
//!
//! Must never: hide a failure. A target checks the properties of every answer, and a panic is a
//! finding.
//!
//! Enter at `run.sh`; each target is one file of `fuzz_targets`, its first inputs are in `seeds`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};

use apiserver::Authenticator;
use resources::{Engine, builtin};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use serde_json::Value;
use stdx::SystemClock;
use store::{Options, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

/// The address of the machine that the box knows.
pub const KNOWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 11);
/// Address of an unknown machine.
pub const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 99);
/// Maximum bytes that are read of an answer: no answer of these services is longer.
const ANSWER_MAX: usize = 16 << 20;

/// An input that is read from its beginning; missing bytes are zero.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Reads one byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// Reads two bytes as a big-endian number.
    pub fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Reads at most `count` bytes.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        front
    }

    /// Reads a length of two bytes, and then as many bytes.
    pub fn chunk(&mut self) -> &'a [u8] {
        let count = self.number();
        self.take(count.into())
    }

    /// Reads up to the next line break; the line break is removed.
    pub fn line(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == b'\n').unwrap_or(self.0.len());
        let line = self.take(end);
        self.byte();
        line
    }

    /// Returns true if no byte is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Runs a future to its end and returns its result.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    });
    RUNTIME.block_on(future)
}

/// An API server with every kind that is built in, on a store of its own.
pub struct Api {
    /// Router that permits every request with the token `t`.
    pub router: axum::Router,
    /// Store of the objects that the router serves.
    pub engine: Engine,
    _folder: TempDir,
}

impl Api {
    /// Creates an API server with `objects`, each with its resource, in the namespace `default`.
    pub fn with(objects: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("objects.redb");
        let store = Store::open(&file, Options::default()).expect("a store");
        let registry = builtin::registry().expect("the kinds");
        let engine = Engine::new(store, registry, Arc::new(SystemClock));
        block_on(async {
            engine.ensure_permanent().await.expect("the namespaces");
            for (resource, object) in objects {
                let made = engine.create(resource, "default", object, Default::default()).await;
                made.expect("an object");
            }
        });
        let tokens = Authenticator::default().with("t", "owner");
        let router = apiserver::router(engine.clone(), tokens, axum::Router::new());
        Self { router, engine, _folder: folder }
    }
}

/// Builds a request; `None` when it is not valid HTTP and no client could send it.
pub fn request(
    method: Method,
    target: &[u8],
    headers: &[(&str, &[u8])],
    body: &[u8],
    peer: Ipv4Addr,
) -> Option<Request<Body>> {
    let target = std::str::from_utf8(target).ok()?;
    let mut request = Request::builder().method(method).uri(format!("/{target}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.extension(ConnectInfo(SocketAddr::from((peer, 1024))));
    request.body(Body::from(body.to_vec())).ok()
}

/// Sends a request to a service; returns status and body of the answer.
pub async fn ask(service: &axum::Router, request: Request<Body>) -> (StatusCode, Vec<u8>) {
    let response = answer(service, request).await;
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), ANSWER_MAX).await;
    (status, body.map(|bytes| bytes.to_vec()).unwrap_or_default())
}

/// Sends a request to a service; returns the answer without waiting for its body.
pub async fn answer(service: &axum::Router, request: Request<Body>) -> Response {
    service.clone().oneshot(request).await.expect("a router has no error of its own")
}
