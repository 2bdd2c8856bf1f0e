//! HTTP: a request comes in, is known, counted and read; the engine answers; the answer is shaped.

mod accept;
pub(crate) mod answer;
pub(crate) mod body;
mod decode;
mod discovery;
pub(crate) mod documents;
mod finish;
pub(crate) mod negotiate;
mod objects;
pub(crate) mod path;
pub(crate) mod query;
mod scale;
mod specification;
mod stream;
mod yaml;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware;
use axum::response::Response;
use http::{Method, StatusCode};

use crate::engine::Engine;
use crate::gate::{self, Door, Gate};
use crate::openapi::Specifications;
use crate::reviews::{self, Review};
use crate::status_error::{Reason, StatusError};
pub use decode::Decoded;
pub(crate) use discovery::version_text as version;
use path::Target;

/// Longest time for a request that is not a watch, its body included.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// What every request can reach.
#[derive(Clone)]
pub(crate) struct App {
    pub engine: Engine,
    pub door: Arc<Door>,
    specifications: Specifications,
}

/// The whole API as one service: the paths of Kubernetes and those of `extra`, which must be
/// absolute (`/apis/tinbox.dev/v1alpha1/…`) and must not have a fallback. Every path but `/version`
/// and the health checks takes a known caller who may do what they ask for, by the roles in the
/// store; handlers of `extra` find the [`access::User`] in the request's extensions.
pub fn router(engine: Engine, gate: impl Into<Gate>, extra: Router) -> Router {
    let door = Arc::new(Door::new(engine.clone(), gate.into()));
    let specifications = Specifications::default();
    let app = App { engine, door: Arc::clone(&door), specifications };
    extra
        .fallback(move |request: Request| {
            let app = app.clone();
            async move { handle(&app, request).await }
        })
        .layer(middleware::from_fn_with_state(door, gate::guard))
}

async fn handle(app: &App, request: Request) -> Response {
    let wishes = finish::Wishes::of(request.method(), request.headers());
    let response = match tokio::time::timeout(REQUEST_TIMEOUT, respond(app, request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => answer::failure(&error),
        Err(_) => answer::failure(&StatusError::new(
            Reason::Timeout,
            "the request did not finish within the time given to it",
        )),
    };
    wishes.apply(response).await
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
            Some(review) => return reviews::respond(app, review, &path, request).await,
            None => return objects::respond(app, path, request).await,
        },
        _ if request.method() != Method::GET => {
            return Err(StatusError::new(
                Reason::MethodNotAllowed,
                "the server does not allow this method on the requested resource",
            ));
        }
        Target::Health => return Ok(text(StatusCode::OK, "ok")),
        Target::Readiness => return Ok(readiness(&app.engine)),
        Target::OpenApi(name) => {
            let query = request.uri().query().unwrap_or_default();
            return specification::respond(app, name, request.headers(), query).await;
        }
        Target::Version => discovery::version(),
        Target::TokenIssuer => reviews::issuer(&app.door)?,
        Target::TokenKeys => reviews::keys(&app.door)?,
        target => return discovery::respond(registry, &target, request.headers()),
    };
    Ok(answer::json(StatusCode::OK, &document))
}

/// In the words of Kubernetes, which keeps the reason from callers without a credential.
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
