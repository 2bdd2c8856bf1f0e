//! How a box of its own is left: restarted, switched off, for one start in safe mode, or as it was
//! when it was flashed (FR-1, FR-2). Whoever asks, it is done here.
//!
//! Never: something erased here. What is wanted is written down, and process 1 does it before
//! anything of the box runs (`platform::reset`).

use std::sync::Arc;

use apiserver::failure;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use panel::model::Action;
use platform::init::{Leave, ask};
use platform::reset::{self, Level};
use status::plain;
use status::reset::{BoxAction, BoxActionRequest, ErasureSummary};
use status::source::ViewSource;

use crate::audit::Audit;

/// For those who may do everything: no other role holds a rule of this group.
const PATH: &str = "/apis/box.tinbox.dev/v1alpha1/reset";
/// Characters of a warning.
const WARNING_MAX: usize = 400;

/// Why nothing is reset on somebody else's system.
pub const NOT_OWN: &str =
    "this Tinbox is a program on somebody else's system, and is restarted and erased there";

/// Routes of a reset: a GET returns an [`ErasureSummary`]; a POST takes a [`BoxActionRequest`] and
/// returns an [`ErasureSummary`] while the box goes down. `faces` show a box with a
/// system of its own.
pub fn router(faces: Option<Arc<dyn ViewSource>>, audit: Audit) -> Router {
    Router::new().route(PATH, get(report).post(leave)).with_state(Asked { faces, audit })
}

#[derive(Clone)]
struct Asked {
    faces: Option<Arc<dyn ViewSource>>,
    audit: Audit,
}

async fn report(State(Asked { faces, .. }): State<Asked>) -> Response {
    match faces {
        Some(faces) => Json(ErasureSummary::of(&faces.view().await)).into_response(),
        None => failure(StatusCode::NOT_FOUND, "NotFound", NOT_OWN),
    }
}

async fn leave(State(asked): State<Asked>, Json(wish): Json<BoxActionRequest>) -> Response {
    let Asked { faces, audit } = asked;
    let Some(faces) = faces else { return failure(StatusCode::NOT_FOUND, "NotFound", NOT_OWN) };
    let erased = ErasureSummary::of(&faces.view().await);
    if let Err(why) = wish.is_meant(&erased.name) {
        return failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &plain(&why));
    }
    let leave = move || carry_out(wish.level, "API", &audit);
    match tokio::task::spawn_blocking(leave).await {
        Ok(Ok(())) => Json(erased).into_response(),
        Ok(Err(why)) => failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &why),
        Err(error) => {
            failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &error.to_string())
        }
    }
}

/// Leaves the box, which is asked for at a place that is named as in `panel`, and records that.
/// Blocks: it writes to disk.
///
/// # Errors
/// The sentence that says why the box goes on.
pub fn carry_out(leaving: BoxAction, at: &str, audit: &Audit) -> Result<(), String> {
    tracing::info!(?leaving, at, "the box is to be left");
    let left = match leaving {
        BoxAction::Restart => ask(Leave::Restart),
        BoxAction::PowerOff => ask(Leave::PowerOff),
        BoxAction::Safe => reset::ask(Level::Safe).and_then(|()| ask(Leave::Restart)),
        BoxAction::Factory => reset::ask(Level::Factory).and_then(|()| ask(Leave::Restart)),
    };
    audit.local(at, verb(leaving), "", left.is_ok());
    left.map_err(|error| {
        let error = stdx::chain(&error);
        tracing::warn!(error, ?leaving, "the box goes on");
        error
    })
}

/// Its name in the audit log.
fn verb(leaving: BoxAction) -> &'static str {
    match leaving {
        BoxAction::Restart => "restart",
        BoxAction::PowerOff => "power-off",
        BoxAction::Safe => "safe-mode",
        BoxAction::Factory => "factory-reset",
    }
}

/// What a panel's action means here; `None` for those that leave the box running.
pub fn meant(action: Action) -> Option<BoxAction> {
    match action {
        Action::Restart => Some(BoxAction::Restart),
        Action::PowerOff => Some(BoxAction::PowerOff),
        Action::SafeMode => Some(BoxAction::Safe),
        Action::FactoryReset => Some(BoxAction::Factory),
        _ => None,
    }
}

/// Has every answer of the API say that the box is in safe mode, as clients of Kubernetes show it
/// (RFC 7234 section 5.5, code 299).
pub fn warned(router: Router, safe_mode: Option<&str>) -> Router {
    let Some(warning) = safe_mode.and_then(warning) else { return router };
    router.layer(axum::middleware::map_response(move |mut answer: Response| {
        let warning = warning.clone();
        async move {
            answer.headers_mut().append(header::WARNING, warning);
            answer
        }
    }))
}

fn warning(why: &str) -> Option<HeaderValue> {
    let text = format!("this box is in safe mode, and serves no machine: {why}");
    let text = text.replace('\\', "/").replace('"', "'");
    let text: String = text.chars().filter(|c| matches!(c, ' '..='~')).take(WARNING_MAX).collect();
    HeaderValue::from_str(&format!("299 - \"{text}\"")).ok()
}

#[cfg(test)]
mod tests;
