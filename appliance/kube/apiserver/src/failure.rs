//! Failures of handlers outside the API, in the API's format.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Returns a failure as a Kubernetes `Status`.
pub fn failure(code: StatusCode, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code.as_u16(),
    });
    (code, Json(status)).into_response()
}
