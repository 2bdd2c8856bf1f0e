//! The routes.
//!
//! | Path | Answer |
//! |---|---|
//! | `/<version>/…`, `/latest/…` | the EC2 tree |
//! | PUT `/latest/api/token` | an IMDSv2 token |
//! | `/nocloud/{meta-data,user-data,vendor-data,network-config}` | the NoCloud seed |
//! | `/metadata` | the storage part, for rootio |
//! | POST `/phone-home` | recorded |
//!
//! Whoever asks is known by the source address, and nothing else: an address that no machine holds
//! gets 404 everywhere. The router has no fallback, so that others can be merged with it; it needs
//! the client's address (`ConnectInfo<SocketAddr>`).

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};

use crate::ec2::{self, Version};
use crate::phone_home::MAX_FORM;
use crate::token::Tokens;
use crate::{Instance, Instances, PhoneHome, nocloud};

/// The most characters of a path that the observer is told.
const MAX_PATH: usize = 200;
/// IMDSv2's headers.
const TOKEN: &str = "x-aws-ec2-metadata-token";
const TOKEN_LIFE: &str = "x-aws-ec2-metadata-token-ttl-seconds";

/// Told what machines ask, from the server's own tasks: must not block.
pub trait Observer: Send + Sync + 'static {
    /// A request was answered. `path` is shortened and holds no value.
    fn asked(&self, peer: IpAddr, path: &str, status: u16);
    /// A machine's operating system is up.
    fn phoned_home(&self, news: PhoneHome);
}

struct Site {
    instances: Arc<dyn Instances>,
    observer: Arc<dyn Observer>,
    tokens: Mutex<Tokens>,
}

type Shared = State<Arc<Site>>;
type Client = ConnectInfo<SocketAddr>;

/// The routes of this crate.
pub fn router(instances: Arc<dyn Instances>, observer: Arc<dyn Observer>) -> Router {
    let site = Arc::new(Site { instances, observer, tokens: Mutex::default() });
    Router::new()
        .route("/latest/api/token", put(token))
        .route("/metadata", get(storage))
        .route("/nocloud/{file}", get(seed))
        .route("/phone-home", post(phone_home))
        .route("/phone-home/", post(phone_home))
        .route("/phone-home/{id}", post(phone_home))
        .route("/{version}", get(tree))
        .route("/{version}/", get(tree))
        .route("/{version}/{*path}", get(tree))
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .route_layer(middleware::from_fn_with_state(site.clone(), observe))
        .with_state(site)
}

/// Tells the observer of every answer.
async fn observe(State(site): Shared, client: Client, request: Request, next: Next) -> Response {
    let path: String = request.uri().path().chars().take(MAX_PATH).collect();
    let response = next.run(request).await;
    site.observer.asked(peer(client), &path, response.status().as_u16());
    response
}

async fn tree(
    State(site): Shared,
    client: Client,
    Path(path): Path<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response {
    let part = |name: &str| path.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v.as_str());
    let Some(version) = Version::read(part("version")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Some(token) = headers.get(TOKEN) {
        let tokens = site.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let token = token.to_str().unwrap_or("");
        if !tokens.accept(token, peer(client), Instant::now()) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
    }
    let found = |instance: Instance| ec2::lookup(&instance, version, part("path"));
    answer(site.instances.by_address(peer(client)).and_then(found))
}

async fn token(State(site): Shared, client: Client, headers: HeaderMap) -> Response {
    let peer = peer(client);
    if site.instances.by_address(peer).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    let life = headers.get(TOKEN_LIFE).and_then(|value| value.to_str().ok()?.parse().ok());
    let issued = life.and_then(|life: u64| {
        let mut tokens = site.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.issue(peer, life, Instant::now()).map(|token| (life, token))
    });
    let Some((life, token)) = issued else { return StatusCode::BAD_REQUEST.into_response() };
    let mut response = answer(Some(token));
    response.headers_mut().insert(TOKEN_LIFE, HeaderValue::from(life));
    response
}

async fn seed(State(site): Shared, client: Client, Path(file): Path<String>) -> Response {
    let instance = site.instances.by_address(peer(client));
    answer(instance.and_then(|instance| nocloud::file(&instance, &file)))
}

/// The one part of the machine that the action rootio reads (`tootles/internal/frontend/hack`).
async fn storage(State(site): Shared, client: Client) -> Response {
    let Some(instance) = site.instances.by_address(peer(client)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let storage = instance.storage.unwrap_or_else(|| serde_json::json!({}));
    let body = serde_json::json!({ "metadata": { "instance": { "storage": storage } } });
    let kind = "application/json; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

async fn phone_home(
    State(site): Shared,
    client: Client,
    form: Result<axum::body::Bytes, BytesRejection>,
) -> Response {
    let peer = peer(client);
    let Some(instance) = site.instances.by_address(peer) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match form {
        Ok(form) => {
            site.observer.phoned_home(PhoneHome::read(peer, instance.hardware, &form));
            answer(Some(String::new()))
        }
        Err(rejection) => rejection.into_response(),
    }
}

fn answer(text: Option<String>) -> Response {
    let Some(text) = text else { return StatusCode::NOT_FOUND.into_response() };
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn peer(ConnectInfo(address): Client) -> IpAddr {
    address.ip().to_canonical()
}

#[cfg(test)]
mod tests;
