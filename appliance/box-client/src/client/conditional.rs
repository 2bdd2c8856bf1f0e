//! Conditional requests (`If-Match`), which fail if another client changed the document meanwhile.

use bytes::Bytes;
use http::Method;
use http::header::IF_MATCH;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use super::{ANSWER_TIMEOUT, Client, Path, reach, read_answer};
use crate::error::ClientError;

/// Body of a conditional request.
pub enum NewContent<'a> {
    /// Whole document as text (PUT).
    Text(&'a str),
    /// Part of the document (PATCH).
    Part(&'a Value),
    /// Parameters of an operation (POST).
    Order(&'a Value),
}

impl Client {
    /// Changes the document if its current checksum is `tag`.
    ///
    /// # Errors
    /// The request fails, or the document has another checksum by now (412).
    pub async fn change_if(
        &self,
        path: &Path,
        query: &str,
        tag: &str,
        new: NewContent<'_>,
    ) -> Result<Value, ClientError> {
        let (method, content, body) = match new {
            NewContent::Text(text) => (Method::PUT, "application/toml", text.to_owned()),
            NewContent::Part(part) => (Method::PATCH, "application/json", part.to_string()),
            NewContent::Order(order) => (Method::POST, "application/json", order.to_string()),
        };
        let request = self.request(method, path, query, content);
        let request = request.header(IF_MATCH, format!("\"{tag}\""));
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
        let whole = async { self.read(self.ask(request, body).await?).await };
        let (code, body) = tokio::time::timeout(ANSWER_TIMEOUT, whole)
            .await
            .unwrap_or_else(|_| Err(reach::silent(&self.server)))?;
        read_answer(&format!("change {path}"), code, &body)
    }

    /// Reads one document with a query.
    pub async fn get_with(&self, path: &Path, query: &str) -> Result<Value, ClientError> {
        self.answer(&format!("get {path}"), Method::GET, path, query, None).await
    }
}
