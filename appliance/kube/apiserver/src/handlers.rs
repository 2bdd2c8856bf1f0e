//! HTTP handlers: parse an authenticated request, call the engine and format the response.

mod deprecated_watch;
mod discovery;
mod finish;
mod gzip_body;
mod list;
mod objects;
mod openapi;
mod scale;
mod watch;
mod yaml;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::middleware;
use axum::response::Response;
use http::{Method, StatusCode};

use crate::filters::{self, AuthConfig, AuthLayer, Client};
use crate::openapi::Specifications;
use crate::wire::counted::{CountedRequest, CountedResponse};
use crate::wire::path::{self, Target};
use crate::wire::{body, response};
use crate::{reviews, version};
use resources::engine::Engine;
use resources::reviews::Review;
use resources::{Reason, StatusError};

/// Maximum duration of a request that is not a watch, its body included.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// State shared by all request handlers.
#[derive(Clone)]
pub(crate) struct App {
    pub engine: Engine,
    pub auth: Arc<AuthLayer>,
    specifications: Specifications,
}

/// Returns a router with the Kubernetes API and the routes of `extra`. Routes of `extra` must be
/// absolute (`/apis/tinbox.dev/v1alpha1/…`), without a fallback. Every path except `/version` and
/// the health checks requires an authenticated user with permission by the roles in the store.
/// Handlers of `extra` get the [`rbac::User`] from the request's extensions.
pub fn router(engine: Engine, config: impl Into<AuthConfig>, extra: Router) -> Router {
    let auth = Arc::new(AuthLayer::new(engine.clone(), config.into()));
    let specifications = Specifications::default();
    let app = App { engine, auth: Arc::clone(&auth), specifications };
    extra
        .fallback(move |request: Request| {
            let app = app.clone();
            async move { handle(&app, request).await }
        })
        .layer(middleware::from_fn_with_state(auth, filters::apply))
        .layer(middleware::map_request(deprecated_watch::rewrite))
}

/// Handles a request within the client's byte limits; 429 above the limits.
async fn handle(app: &App, request: Request) -> Response {
    let target = path::parse(request.uri().path());
    if matches!(target, Some(Target::Version | Target::Health | Target::Readiness)) {
        // Health checks must get a response even if other clients use up the limits.
        return format_response(app, request).await;
    }
    let client = request.extensions().get::<Client>().map(|client| Arc::clone(&client.0));
    let client = client.unwrap_or_default();
    let entered = (app.auth.bodies.enter(&client), app.auth.responses.enter(&client));
    let (Some(body), Some(mut held)) = entered else {
        return response::failure(&StatusError::too_many_requests());
    };
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    let read = Arc::new(Mutex::new(body));
    let counted = |inner| Body::new(CountedRequest::new(inner, Arc::clone(&read)));
    let response = body::in_turn(format_response(app, request.map(counted))).await;
    drop(read);
    let Some(bytes) = response.body().size_hint().exact() else {
        // A watch or a long list counts its own bytes.
        return response;
    };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if !reads {
        // The write is done, so the response is sent whatever its size.
        held.force(bytes);
    } else if !held.take(bytes) {
        return response::failure(&StatusError::too_many_requests());
    }
    response.map(|body| Body::new(CountedResponse::new(body, held)))
}

/// Handles a request within [`REQUEST_TIMEOUT`]; converts the response or error to YAML or gzip.
async fn format_response(app: &App, request: Request) -> Response {
    let options = finish::ResponseOptions::of(request.method(), request.headers());
    let response = match tokio::time::timeout(REQUEST_TIMEOUT, respond(app, request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => response::failure(&error),
        Err(_) => response::failure(&StatusError::new(
            Reason::Timeout,
            "the request did not finish within the time given to it",
        )),
    };
    options.apply(response).await
}

async fn respond(app: &App, mut request: Request) -> Result<Response, StatusError> {
    if request.method() == Method::HEAD {
        *request.method_mut() = Method::GET;
    }
    let target = path::parse(request.uri().path()).ok_or_else(StatusError::no_such_resource)?;
    let registry = app.engine.registry();
    let registry = registry.as_ref();
    let document = match target {
        Target::Resource(path) => match Review::find(&path.group, &path.resource()) {
            Some(review) => return reviews::respond(&app.auth, review, &path, request).await,
            None => return objects::respond(app, path, request).await,
        },
        _ if request.method() != Method::GET => return Err(StatusError::method_not_allowed()),
        Target::Health => return Ok(text(StatusCode::OK, "ok")),
        Target::Readiness => return Ok(readiness(&app.engine)),
        Target::OpenApi(name) => {
            let query = request.uri().query().unwrap_or_default();
            return openapi::respond(app, name, request.headers(), query).await;
        }
        Target::Version => version::document(),
        Target::TokenIssuer => reviews::issuer(&app.auth)?,
        Target::TokenKeys => reviews::keys(&app.auth)?,
        target => return discovery::respond(registry, &target, request.headers()),
    };
    Ok(response::json(StatusCode::OK, &document))
}

/// Returns 200, or 500 without a reason if the store stopped: clients may be unauthenticated.
fn readiness(engine: &Engine) -> Response {
    match engine.stopped() {
        None => text(StatusCode::OK, "ok"),
        Some(_) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "[-]store failed: reason withheld\nreadyz check failed\n",
        ),
    }
}

fn text(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, plain);
    response
}
