//! Error responses in the API's format, for HTTP handlers outside this crate.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Returns an error response with a Kubernetes `Status` as body.
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
