//! Restart, power-off, safe mode and factory reset of a box that runs as firmware (FR-1, FR-2).
//! API, pages and panel use this module.
//!
//! Never: erases data here. The module writes the request to disk, and process 1 carries it out at
//! the next start, before the supervisor runs (`platform::reset`).

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

/// Path of the reset. Only administrators have a rule for this API group.
const PATH: &str = "/apis/box.tinbox.dev/v1alpha1/reset";
/// Maximum length of a warning in characters.
const WARNING_MAX: usize = 400;

/// Error message on a guest, whose host system cannot be reset by the box.
pub const NOT_OWN: &str = "Tinbox runs as a program on a host system: restart or erase it there";

/// Returns the routes of a reset. GET returns an [`ErasureSummary`]. POST takes a
/// [`BoxActionRequest`], and returns an [`ErasureSummary`]. `view_source` is `None` on a guest.
pub fn router(view_source: Option<Arc<dyn ViewSource>>, audit: Audit) -> Router {
    Router::new()
        .route(PATH, get(report).post(leave))
        .with_state(RouterState { view_source, audit })
}

#[derive(Clone)]
struct RouterState {
    view_source: Option<Arc<dyn ViewSource>>,
    audit: Audit,
}

async fn report(State(RouterState { view_source, .. }): State<RouterState>) -> Response {
    match view_source {
        Some(view_source) => Json(ErasureSummary::of(&view_source.view().await)).into_response(),
        None => failure(StatusCode::NOT_FOUND, "NotFound", NOT_OWN),
    }
}

async fn leave(
    State(asked): State<RouterState>,
    Json(request): Json<BoxActionRequest>,
) -> Response {
    let RouterState { view_source, audit } = asked;
    let Some(view_source) = view_source else {
        return failure(StatusCode::NOT_FOUND, "NotFound", NOT_OWN);
    };
    let erased = ErasureSummary::of(&view_source.view().await);
    if let Err(why) = request.is_meant(&erased.name) {
        return failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &plain(&why));
    }
    let leave = move || carry_out(request.level, "API", &audit);
    match tokio::task::spawn_blocking(leave).await {
        Ok(Ok(())) => Json(erased).into_response(),
        Ok(Err(why)) => failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &why),
        Err(error) => {
            failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &error.to_string())
        }
    }
}

/// Restarts, switches off or resets the box, and records the action in the audit log. `at` is the
/// place of the request, such as `panel`. The call blocks while it writes to disk.
///
/// # Errors
/// A sentence with the reason why the box keeps running.
pub fn carry_out(leaving: BoxAction, at: &str, audit: &Audit) -> Result<(), String> {
    tracing::info!(?leaving, at, "the box goes down");
    let left = match leaving {
        BoxAction::Restart => ask(Leave::Restart),
        BoxAction::PowerOff => ask(Leave::PowerOff),
        BoxAction::Safe => reset::ask(Level::Safe).and_then(|()| ask(Leave::Restart)),
        BoxAction::Factory => reset::ask(Level::Factory).and_then(|()| ask(Leave::Restart)),
    };
    audit.local(at, verb(leaving), "", left.is_ok());
    left.map_err(|error| {
        let error = stdx::chain(&error);
        tracing::warn!(error, ?leaving, "the box stays on");
        error
    })
}

/// Returns the verb of the action in the audit log.
fn verb(leaving: BoxAction) -> &'static str {
    match leaving {
        BoxAction::Restart => "restart",
        BoxAction::PowerOff => "power-off",
        BoxAction::Safe => "safe-mode",
        BoxAction::Factory => "factory-reset",
    }
}

/// Returns the box action of a panel action, or `None` if the box keeps running during the action.
pub fn meant(action: Action) -> Option<BoxAction> {
    match action {
        Action::Restart => Some(BoxAction::Restart),
        Action::PowerOff => Some(BoxAction::PowerOff),
        Action::SafeMode => Some(BoxAction::Safe),
        Action::FactoryReset => Some(BoxAction::Factory),
        _ => None,
    }
}

/// Adds a warning about safe mode to every API response (RFC 7234 section 5.5, code 299).
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
    let text = format!("this box is in safe mode and serves no machines: {why}");
    let text = text.replace('\\', "/").replace('"', "'");
    let text: String = text.chars().filter(|c| matches!(c, ' '..='~')).take(WARNING_MAX).collect();
    HeaderValue::from_str(&format!("299 - \"{text}\"")).ok()
}

#[cfg(test)]
mod tests;
