//! What is true only now and not worth writing down: how far a running action is.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use status::progress::Progress;

use crate::agents::AgentService;

/// Paths below `/apis/tinbox.dev/v1alpha1`, for the API's authenticated part.
pub fn router(agents: Arc<AgentService>) -> Router {
    Router::new()
        .route(
            "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/workflows/{name}/progress",
            get(progress),
        )
        .with_state(agents)
}

/// A [`Progress`]; 404 while no action says how far it is.
async fn progress(
    State(agents): State<Arc<AgentService>>,
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
            let status = json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "reason": "NotFound",
                "message": "no action of this workflow says how far it is",
                "code": 404,
            });
            (StatusCode::NOT_FOUND, Json(status)).into_response()
        }
    }
}
