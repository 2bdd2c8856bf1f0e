//! What is true only now and not worth writing down: how far a running action is.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

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

/// `{action, message, bytesDone, bytesTotal, millis}`; 404 while no action says how far it is.
async fn progress(
    State(agents): State<Arc<AgentService>>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    match agents.latest(&format!("{namespace}/{name}")) {
        Some(latest) => Json(json!({
            "action": agents.action_name(&latest.progress).await,
            "message": latest.progress.message,
            "bytesDone": latest.progress.bytes_done,
            "bytesTotal": latest.progress.bytes_total,
            "millis": latest.at.duration_since(latest.since).as_millis() as u64,
        }))
        .into_response(),
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
