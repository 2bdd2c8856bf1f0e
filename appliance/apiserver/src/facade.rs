//! HTTP: a request comes in, is known, counted and read; the engine answers; the answer is shaped.

mod answer;
mod body;
mod discovery;
pub(crate) mod negotiate;
mod objects;
pub(crate) mod path;
pub(crate) mod query;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use tokio::sync::Semaphore;

use crate::auth::{Authenticator, User};
use crate::engine::Engine;
use crate::status_error::{Reason, StatusError};
use path::Target;

/// Reads being answered at one time; more are told to come again in a second.
pub const MAX_READS: usize = 200;
/// Writes being answered at one time.
pub const MAX_WRITES: usize = 100;
/// Watches running at one time.
pub const MAX_WATCHES: usize = 1000;
/// Longest time for a request that is not a watch, its body included.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// What every request can reach.
#[derive(Clone)]
pub(crate) struct App {
    pub engine: Engine,
    auth: Authenticator,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

/// The whole API as one service: the paths of Kubernetes and those of `extra`, which must be
/// absolute (`/apis/tinbox.dev/v1alpha1/…`) and must not have a fallback. Every path but `/version`
/// and the health checks is open to known tokens only; handlers of `extra` find the
/// [`User`] in the request's extensions.
pub fn router(engine: Engine, auth: Authenticator, extra: Router) -> Router {
    let app = App {
        engine,
        auth,
        reads: Arc::new(Semaphore::new(MAX_READS)),
        writes: Arc::new(Semaphore::new(MAX_WRITES)),
        watches: Arc::new(Semaphore::new(MAX_WATCHES)),
    };
    let state = app.clone();
    extra
        .fallback(move |request: Request| {
            let app = app.clone();
            async move { handle(&app, request).await }
        })
        .layer(middleware::from_fn_with_state(state, guard))
}

/// Lets known callers through.
async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let open = matches!(path::parse(request.uri().path()), Some(Target::Version | Target::Health));
    match app.auth.authenticate(request.headers().get(AUTHORIZATION)) {
        Some(user) => {
            request.extensions_mut().insert(user);
        }
        None if open => {}
        None => {
            return answer::failure(&StatusError::new(Reason::Unauthorized, "Unauthorized"));
        }
    }
    next.run(request).await
}

async fn handle(app: &App, request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let user = request.extensions().get::<User>().map(|user| user.name.clone());
    let response = match tokio::time::timeout(REQUEST_TIMEOUT, respond(app, request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => answer::failure(&error),
        Err(_) => answer::failure(&StatusError::new(
            Reason::Timeout,
            "the request did not finish within the time given to it",
        )),
    };
    let code = response.status().as_u16();
    if method == Method::GET {
        tracing::debug!(user, %method, path, code, "API request");
    } else {
        tracing::info!(user, %method, path, code, "API write");
    }
    response
}

async fn respond(app: &App, request: Request) -> Result<Response, StatusError> {
    let target = path::parse(request.uri().path()).ok_or_else(StatusError::no_such_resource)?;
    let registry = app.engine.registry();
    let document = match target {
        Target::Resource(path) => return objects::respond(app, path, request).await,
        _ if request.method() != Method::GET => {
            return Err(StatusError::new(
                Reason::MethodNotAllowed,
                "the server does not allow this method on the requested resource",
            ));
        }
        Target::Health => return Ok(text("ok")),
        Target::Version => discovery::version(),
        Target::CoreVersions => discovery::core_versions(registry),
        Target::Groups => discovery::groups(registry),
        Target::Group(name) => discovery::group(registry, &name)?,
        Target::Resources { group, version } => discovery::resources(registry, &group, &version)?,
    };
    Ok(answer::json(StatusCode::OK, &document))
}

fn text(text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, plain);
    response
}
