//! HTTP handlers of access tokens. Only administrators may use the API group `box.tinbox.dev`.

use std::path::PathBuf;
use std::sync::Arc;

use apiserver::failure;
use apiserver::{AdminTokens, TokenError};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use stdx::Secret;

use crate::keys::copies;

const ROOT: &str = "/apis/box.tinbox.dev/v1alpha1/access";

/// Tokens of administrators, and the second copy of the token file.
pub struct Tokens {
    tokens: AdminTokens,
    state: PathBuf,
}

impl Tokens {
    /// Creates access to the tokens in the folder `state`.
    pub fn new(tokens: AdminTokens, state: PathBuf) -> Arc<Self> {
        Arc::new(Self { tokens, state })
    }

    /// Replaces the administrator's token, and returns the new kubeconfig. Blocks while writing.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn rotate(&self) -> Result<Secret, TokenError> {
        let rotated = self.tokens.rotate();
        copies::keep(&self.state);
        rotated
    }

    fn revoke(&self, id: &str) -> Result<apiserver::TokenInfo, TokenError> {
        let revoked = self.tokens.revoke(id);
        copies::keep(&self.state);
        revoked
    }
}

/// Returns the routes of tokens: a GET of `…/access` lists all tokens. A POST to `…/access/rotate`
/// replaces the administrator's token. A POST to `…/access/revoke` with an `id` revokes a token.
pub fn router(tokens: Arc<Tokens>) -> Router {
    Router::new()
        .route(ROOT, get(list))
        .route(&format!("{ROOT}/rotate"), post(rotate))
        .route(&format!("{ROOT}/revoke"), post(revoke))
        .with_state(tokens)
}

async fn list(State(tokens): State<Arc<Tokens>>) -> Response {
    Json(json!({ "tokens": tokens.tokens.list() })).into_response()
}

async fn rotate(State(tokens): State<Arc<Tokens>>) -> Response {
    let rotated = tokio::task::spawn_blocking(move || tokens.rotate()).await;
    match rotated {
        Ok(Ok(kubeconfig)) => Json(json!({ "kubeconfig": kubeconfig.expose() })).into_response(),
        Ok(Err(error)) => refused(&error),
        Err(error) => internal(&error.to_string()),
    }
}

#[derive(Deserialize)]
struct Revocation {
    id: String,
}

async fn revoke(
    State(tokens): State<Arc<Tokens>>,
    Json(Revocation { id }): Json<Revocation>,
) -> Response {
    let revoked = tokio::task::spawn_blocking(move || tokens.revoke(&id)).await;
    match revoked {
        Ok(Ok(token)) => Json(json!({ "revoked": token })).into_response(),
        Ok(Err(error)) => refused(&error),
        Err(error) => internal(&error.to_string()),
    }
}

fn refused(error: &TokenError) -> Response {
    let why = stdx::chain(error);
    match error {
        TokenError::NotOne(..) => failure(StatusCode::NOT_FOUND, "NotFound", &why),
        TokenError::Last(_) => failure(StatusCode::CONFLICT, "Conflict", &why),
        TokenError::File(_) => internal(&why),
    }
}

fn internal(why: &str) -> Response {
    failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why)
}
