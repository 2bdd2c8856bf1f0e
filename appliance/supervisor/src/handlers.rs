//! HTTP handlers for data that is not stored: status view, progress of a running action, recent log
//! lines of a machine, DHCP clients, cached images.

pub mod users;

use std::sync::Arc;

use agent_service::Service;
use api::meta::ObjectKey;
use apiserver::failure;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use lifecycle::local_actions::IdentifyState;
use lifecycle::update::{self, Updates};
use provisioning::images::{self, Images};
use provisioning::observers::Observers;
use serde::Deserialize;
use serde_json::json;
use status::dhcp_client::DhcpClient;
use status::log::LogLine;
use status::progress::Progress;
use status::source::ViewSource as _;
use status::view::{StatusView, Text};

use crate::status_builder::StatusBuilder;

/// Default number of log lines in a response.
const LINES: usize = 200;

/// Returns the routes below `/apis/tinbox.dev/v1alpha1`, for the authenticated part of the API.
pub fn router(
    agents: Arc<Service>,
    syslog: Arc<syslog::Log>,
    observers: Arc<Observers>,
    images: Images,
    updates: Option<Arc<Updates>>,
    (identify_state, status_builder): (IdentifyState, Arc<StatusBuilder>),
) -> Router {
    let progress = Router::new()
        .route(
            "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/workflows/{name}/progress",
            get(progress),
        )
        .with_state(agents);
    let dhcp_clients = Router::new()
        .route("/apis/tinbox.dev/v1alpha1/heard", get(dhcp_clients))
        .with_state(observers);
    Router::new()
        .route("/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/hardware/{name}/log", get(log))
        .with_state(syslog)
        .merge(progress)
        .merge(dhcp_clients)
        .route("/apis/tinbox.dev/v1alpha1/identify", post(identify).with_state(identify_state))
        .route("/apis/tinbox.dev/v1alpha1/status", get(status).with_state(status_builder))
        .merge(images::router(images))
        .merge(update::router(updates))
}

/// Returns the [`StatusView`] of the box, without the code that claims it and without its log,
/// which is for its owner: every viewer may read the rest.
async fn status(State(status_builder): State<Arc<StatusBuilder>>) -> Json<StatusView> {
    let mut view = status_builder.view().await;
    view.claim.iter_mut().for_each(|claim| claim.code = Text::default());
    view.log.clear();
    Json(view)
}

/// Returns the DHCP clients of the last hour, newest first. The list may be empty.
async fn dhcp_clients(State(observers): State<Arc<Observers>>) -> Json<Vec<DhcpClient>> {
    Json(observers.dhcp_clients())
}

/// Makes the box blink for a minute, so that a person can find it in a rack.
async fn identify(State(identify_state): State<IdentifyState>) -> Json<serde_json::Value> {
    tracing::info!("identify requested over the API");
    identify_state.begin();
    Json(json!({ "seconds": IdentifyState::SECONDS }))
}

/// Query parameters of the log.
#[derive(Deserialize)]
struct LogQuery {
    lines: Option<usize>,
}

/// Returns the last [`LogLine`]s of a machine, oldest first.
async fn log(
    State(syslog): State<Arc<syslog::Log>>,
    Path((namespace, name)): Path<(String, String)>,
    Query(tail): Query<LogQuery>,
) -> Json<Vec<LogLine>> {
    Json(log_tail(&syslog, &ObjectKey::new(namespace, name), tail.lines.unwrap_or(LINES)))
}

/// Returns the last `lines` log lines of a machine, oldest first.
pub fn log_tail(syslog: &syslog::Log, machine: &ObjectKey, lines: usize) -> Vec<LogLine> {
    syslog.tail(&machine.to_string(), lines).into_iter().map(line).collect()
}

fn line(entry: syslog::Entry) -> LogLine {
    let syslog::Line { severity, program, text, .. } = entry.line;
    LogLine {
        received: Timestamp::try_from(entry.received).unwrap_or_default(),
        severity: severity.map(word).unwrap_or_default().to_owned(),
        program,
        text,
    }
}

/// Returns the keyword of a severity, as in syslog.conf(5) (RFC 5424 table 2).
fn word(severity: syslog::Severity) -> &'static str {
    use syslog::Severity;
    match severity {
        Severity::Emergency => "emerg",
        Severity::Alert => "alert",
        Severity::Critical => "crit",
        Severity::Error => "err",
        Severity::Warning => "warning",
        Severity::Notice => "notice",
        Severity::Info => "info",
        Severity::Debug => "debug",
    }
}

/// Returns a [`Progress`], or 404 if no action has reported its progress.
async fn progress(
    State(agents): State<Arc<Service>>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    match agents.latest(&format!("{namespace}/{name}")) {
        Some(latest) => {
            let millis = latest.at.duration_since(latest.since).as_millis();
            Json(Progress {
                action: agents.action_name(&latest.progress).await,
                message: latest.progress.message,
                bytes_done: latest.progress.bytes_done,
                bytes_total: latest.progress.bytes_total,
                millis: u64::try_from(millis).unwrap_or(0),
            })
            .into_response()
        }
        None => {
            let why = "no action of this workflow reports progress";
            failure(StatusCode::NOT_FOUND, "NotFound", why)
        }
    }
}
