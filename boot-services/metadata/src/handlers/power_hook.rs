//! HTTP handlers for the power hooks of installed systems.

use std::time::Instant;

use axum::extract::{Extension, Form, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{Client, Shared, answer};
use crate::power_hook::{Down, Poll, base_url, install_script};

/// Answer to a hook that must not power its machine off.
const NONE: &str = "none\n";

/// Serves the script that installs the hook of the requesting machine. The script contains the key
/// of the machine, so it has the protection of user data.
pub(super) async fn install(
    State(state): Shared,
    Extension(client): Client,
    headers: HeaderMap,
) -> Response {
    let Some(instance) = state.sender(client) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !state.may_have_secrets(&instance) {
        state.observer.withheld(client, &instance.hardware);
        let why = "the machine may not have its user data now: see user_data in box.toml\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let Some(url) = host.and_then(base_url) else { return StatusCode::BAD_REQUEST.into_response() };
    let mut response = answer(Some(install_script(&url, &state.hooks.key_of(&instance.uuid))));
    let kind = HeaderValue::from_static("text/x-shellscript; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Answers the poll of a hook with the request to power off that waits for it, if any.
pub(super) async fn poll(
    State(state): Shared,
    Extension(client): Client,
    Form(poll): Form<Poll>,
) -> Response {
    let Some(instance) = state.sender(client) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let key = state.hooks.key_of(&instance.uuid);
    if !poll.is_of(&key) {
        return StatusCode::FORBIDDEN.into_response();
    }
    match state.hooks.polled(&instance.hardware, &poll, Instant::now()) {
        Ok(Some(request)) => answer(Some(poll.off(&key, &request))),
        Ok(None) => answer(Some(NONE.to_owned())),
        Err(_) => StatusCode::CONFLICT.into_response(),
    }
}

/// Answers the confirmation of a hook. The hook powers its machine off only after this answer.
pub(super) async fn down(
    State(state): Shared,
    Extension(client): Client,
    Form(down): Form<Down>,
) -> Response {
    let Some(instance) = state.sender(client) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let key = state.hooks.key_of(&instance.uuid);
    if !down.is_of(&key) {
        return StatusCode::FORBIDDEN.into_response();
    }
    match state.hooks.confirmed(&instance.hardware, &down) {
        Ok(true) => answer(Some(down.go(&key))),
        Ok(false) => answer(Some(NONE.to_owned())),
        Err(_) => StatusCode::CONFLICT.into_response(),
    }
}
