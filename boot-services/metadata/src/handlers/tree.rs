//! HTTP handlers for the EC2 tree and its tokens.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::extract::{ConnectInfo, Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{Client, RouterState, Shared, answer, lock};
use crate::config::Imdsv2;
use crate::ec2::{self, Version};
use crate::{Instance, proxy};

/// Header with the IMDSv2 token.
const TOKEN: &str = "x-aws-ec2-metadata-token";
const TOKEN_LIFE: &str = "x-aws-ec2-metadata-token-ttl-seconds";
/// Body of Tootles' router for an unknown path.
const NO_ROUTE: &str = "404 page not found";

/// Parts of a path, by their names in the route.
type Parts = Path<Vec<(String, String)>>;

/// Serves the EC2 tree of the requesting machine.
pub(super) async fn own(
    State(state): Shared,
    Extension(client): Client,
    Path(parts): Parts,
    headers: HeaderMap,
) -> Response {
    let Some(version) = Version::read(part(&parts, "version")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !has_valid_token(&state, client, &headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let path = part(&parts, "path");
    leaf(state.machine(client, path), version, path)
}

/// Serves the EC2 tree of any machine, identified by its instance id.
pub(super) async fn of_id(
    State(state): Shared,
    Extension(client): Client,
    Path(parts): Parts,
    headers: HeaderMap,
) -> Response {
    if !has_valid_token(&state, client, &headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let (id, path) = (part(&parts, "id"), part(&parts, "path"));
    let found = state.instances.by_instance_id(id);
    leaf(found.map(|instance| state.without_secrets(instance, client, path)), Version::First, path)
}

/// Creates a token. As in EC2, a client behind a proxy gets no token, unless the proxy is trusted.
pub(super) async fn token(
    State(state): Shared,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(client): Client,
    headers: HeaderMap,
) -> Response {
    if state.sender(client).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    let trusted = state.config.trusts(peer.ip().to_canonical());
    if headers.contains_key(proxy::FORWARDED_FOR) && !trusted {
        return StatusCode::FORBIDDEN.into_response();
    }
    let life = headers.get(TOKEN_LIFE).and_then(|value| value.to_str().ok()?.parse().ok());
    let issued = life.and_then(|life: u64| {
        let token = lock(&state.tokens).issue(client, life, Instant::now());
        token.map(|token| (life, token))
    });
    let Some((life, token)) = issued else { return StatusCode::BAD_REQUEST.into_response() };
    let mut response = answer(Some(token));
    response.headers_mut().insert(TOKEN_LIFE, HeaderValue::from(life));
    response
}

/// Returns true if the token is valid, or if the request has no token and none is required.
fn has_valid_token(state: &RouterState, client: IpAddr, headers: &HeaderMap) -> bool {
    match headers.get(TOKEN) {
        None => state.config.imdsv2 == Imdsv2::Optional,
        Some(token) => {
            let token = token.to_str().unwrap_or_default();
            lock(&state.tokens).accept(token, client, Instant::now())
        }
    }
}

fn leaf(machine: Option<Instance>, version: Version, path: &str) -> Response {
    let Some(machine) = machine else { return StatusCode::NOT_FOUND.into_response() };
    match ec2::lookup(&machine, version, path) {
        None if version == Version::First => {
            (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "text/plain")], NO_ROUTE)
                .into_response()
        }
        found => answer(found),
    }
}

fn part<'a>(parts: &'a [(String, String)], name: &str) -> &'a str {
    parts.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value.as_str())
}
