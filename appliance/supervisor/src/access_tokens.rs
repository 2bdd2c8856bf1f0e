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
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::json;
use status::access::{AccessToken, DAYS_MAX, TokenRequest};
use stdx::{Clock, Secret};

use lifecycle::copies;

const ROOT: &str = "/apis/box.tinbox.dev/v1alpha1/access";

/// Tokens of administrators, and the second copy of the token file.
pub struct Tokens {
    tokens: AdminTokens,
    state: PathBuf,
    clock: Arc<dyn Clock>,
}

impl Tokens {
    /// Creates access to the tokens in the folder `state`.
    pub fn new(tokens: AdminTokens, state: PathBuf, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { tokens, state, clock })
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

    /// Returns all tokens, in the order in which they were made.
    pub fn list(&self) -> Vec<AccessToken> {
        self.tokens.list().into_iter().map(token).collect()
    }

    /// Creates a token and returns a kubeconfig with it, which is stored nowhere. Blocks while
    /// writing.
    ///
    /// # Errors
    /// The name, the role or the number of days is not allowed, or a file cannot be written.
    pub fn create(&self, request: &TokenRequest) -> Result<Secret, TokenError> {
        let days = i64::from(request.days.clamp(1, DAYS_MAX));
        let until = self.clock.now() + SignedDuration::from_hours(24 * days);
        let created = self.tokens.create(&request.name, &request.role, until);
        copies::keep(&self.state);
        created
    }

    /// Revokes the token whose id begins with `id`. Blocks while writing.
    ///
    /// # Errors
    /// No token or several tokens match, or no administrator's token would remain.
    pub fn revoke(&self, id: &str) -> Result<apiserver::TokenInfo, TokenError> {
        let revoked = self.tokens.revoke(id);
        copies::keep(&self.state);
        revoked
    }
}

/// Returns the routes of tokens: a GET of `…/access` lists all tokens. A POST to `…/access/rotate`
/// replaces the administrator's token. A POST to `…/access/create` with a [`TokenRequest`] creates
/// a token, and a POST to `…/access/revoke` with an `id` revokes one.
pub fn router(tokens: Arc<Tokens>) -> Router {
    Router::new()
        .route(ROOT, get(list))
        .route(&format!("{ROOT}/rotate"), post(rotate))
        .route(&format!("{ROOT}/create"), post(create))
        .route(&format!("{ROOT}/revoke"), post(revoke))
        .with_state(tokens)
}

async fn list(State(tokens): State<Arc<Tokens>>) -> Response {
    Json(json!({ "tokens": tokens.list() })).into_response()
}

async fn rotate(State(tokens): State<Arc<Tokens>>) -> Response {
    let rotated = tokio::task::spawn_blocking(move || tokens.rotate()).await;
    match rotated {
        Ok(Ok(kubeconfig)) => Json(json!({ "kubeconfig": kubeconfig.expose() })).into_response(),
        Ok(Err(error)) => refused(&error),
        Err(error) => internal(&error.to_string()),
    }
}

async fn create(State(tokens): State<Arc<Tokens>>, Json(request): Json<TokenRequest>) -> Response {
    let created = tokio::task::spawn_blocking(move || tokens.create(&request)).await;
    match created {
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

fn token(info: apiserver::TokenInfo) -> AccessToken {
    let apiserver::TokenInfo { id, user, groups, until, used } = info;
    AccessToken { id, user, groups, until, used }
}

fn refused(error: &TokenError) -> Response {
    let why = stdx::chain(error);
    match error {
        TokenError::NotOne(..) => failure(StatusCode::NOT_FOUND, "NotFound", &why),
        TokenError::Last(_) | TokenError::Full => failure(StatusCode::CONFLICT, "Conflict", &why),
        TokenError::Name(_) | TokenError::Role(_) => {
            failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &why)
        }
        TokenError::File(_) => internal(&why),
    }
}

fn internal(why: &str) -> Response {
    failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why)
}
