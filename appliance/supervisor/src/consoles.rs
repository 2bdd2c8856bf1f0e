//! Serial console of a machine over the API: its output, and characters to type.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware};
use apiserver::failure;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::stream;
use futures_util::{Stream, StreamExt as _};
use objects::{ObjectError, Objects, fetch};
use serde::Deserialize;
use serde_json::json;
use serial_console::{Consoles, OpenError, Viewer};
use web::ConsoleStream;

/// Maximum length of the characters of one request, in bytes.
const TYPED_BYTES_MAX: usize = 4096;

/// Consoles; empty until they are started, and in safe mode.
pub type StartedConsoles = Arc<OnceLock<Consoles>>;

#[derive(Clone)]
struct Access {
    objects: Arc<dyn Objects>,
    consoles: StartedConsoles,
}

/// Returns the routes of the consoles. `GET` returns the recorded output, and with `?follow=true`
/// also the output from then on, as long as the machine has a console; `POST` types the body.
pub fn router(objects: Arc<dyn Objects>, consoles: StartedConsoles) -> Router {
    let console = get(output).post(type_characters);
    Router::new()
        .route(
            "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/hardware/{name}/console",
            console.layer(DefaultBodyLimit::max(TYPED_BYTES_MAX)),
        )
        .with_state(Access { objects, consoles })
}

impl Access {
    /// Returns the consoles if the Hardware is in this namespace, for which the request is
    /// authorized. Consoles have the names of Hardware, without a namespace.
    async fn consoles(&self, namespace: &str, name: &str) -> Result<&Consoles, Response> {
        let key = ObjectKey::new(namespace, name);
        let found: Result<Hardware, _> = fetch(self.objects.as_ref(), HARDWARE, &key).await;
        found.map_err(|error| match error {
            ObjectError::NotFound(_) => missing(&format!("hardware {key} does not exist")),
            error => {
                let why = format!("cannot read hardware {key}: {error}");
                failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &why)
            }
        })?;
        self.consoles.get().ok_or_else(|| {
            let why = "the serial consoles are not started: the box is starting, or in safe mode";
            failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why)
        })
    }
}

fn missing(why: &str) -> Response {
    failure(StatusCode::NOT_FOUND, "NotFound", why)
}

/// Returns the error of a machine whose console cannot be opened before a person changes something.
fn refused(name: &str, error: &OpenError) -> Response {
    let hint = "correct this on the BMC or in its Machine; the box tries again within 13 minutes; \
                --recorded shows the output until now";
    let why = format!("machine {name} has no serial console now: {}\nhint: {hint}", error.message);
    failure(StatusCode::CONFLICT, "Conflict", &why)
}

fn without_console(error: &serial_console::Error) -> Response {
    let hint = "IPMI and Intel AMT have one; set spec.bmcRef of the Hardware";
    missing(&format!("{error}\nhint: {hint}"))
}

/// Maximum time of one response that follows a console, as of a watch: a client asks again, and its
/// credential is checked again.
const FOLLOW_TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Maximum wait for the first attempt to open a session, so that a machine without a console gets
/// an error; a client waits 30 s for a response.
const TRY_TIME_MAX: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
struct OutputQuery {
    #[serde(default)]
    follow: bool,
}

async fn output(
    State(access): State<Access>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<OutputQuery>,
) -> Result<Response, Response> {
    let consoles = access.consoles(&namespace, &name).await?;
    let body = if query.follow {
        match consoles.attach(&name).await {
            Ok(mut viewer) => {
                let tried = tokio::time::timeout(TRY_TIME_MAX, viewer.session.tried()).await;
                if let Ok(Err(error)) = tried {
                    return Err(refused(&name, &error));
                }
                let live = while_usable(viewer).take_until(tokio::time::sleep(FOLLOW_TIME_MAX));
                Ok(Body::from_stream(live.map(Ok::<_, Infallible>)))
            }
            Err(error) => Err(error),
        }
    } else {
        consoles.recorded(&name).await.map(Body::from)
    };
    let body = body.map_err(|error| without_console(&error))?;
    Ok(([(CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// Returns the output as [`live`] does, until no session can be opened any more. The last output
/// has the reason.
fn while_usable(viewer: Viewer) -> impl Stream<Item = Bytes> + Send {
    let Viewer { history, shown, session, .. } = viewer;
    let later = stream::unfold((shown, session), |(mut shown, mut session)| async {
        // Output that waits comes before the end.
        let piece = tokio::select! {
            biased;
            piece = shown.next() => piece,
            () = session.refused() => None,
        };
        Some((piece?, (shown, session)))
    });
    stream::once(async { Bytes::from(history) }).chain(later)
}

/// Returns the latest recorded output, then the output of the machine until the console ends.
pub fn live(viewer: Viewer) -> ConsoleStream {
    let Viewer { history, shown, .. } = viewer;
    let first = stream::once(async { Bytes::from(history) });
    let later = stream::unfold(shown, |mut shown| async { Some((shown.next().await?, shown)) });
    Box::pin(first.chain(later))
}

async fn type_characters(
    State(access): State<Access>,
    Path((namespace, name)): Path<(String, String)>,
    characters: Bytes,
) -> Result<Response, Response> {
    let consoles = access.consoles(&namespace, &name).await?;
    let input = consoles.input(&name).await.map_err(|error| without_console(&error))?;
    if !input.send(&characters).await {
        let why = "the machine accepts no characters at this time; the console's output says if \
                   there is a session";
        return Err(failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why));
    }
    Ok(Json(json!({ "bytes": characters.len() })).into_response())
}

#[cfg(test)]
mod tests;
