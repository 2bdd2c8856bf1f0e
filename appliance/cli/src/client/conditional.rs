//! Changes that only hold as long as nobody else made one.

use bytes::Bytes;
use http::Method;
use http::header::IF_MATCH;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use super::{ANSWER_TIMEOUT, Client, Path, read_answer, trouble};
use crate::error::Error;

/// What is to be there.
pub enum New<'a> {
    /// All of it, as text.
    Text(&'a str),
    /// Some of it.
    Part(&'a Value),
    /// An order.
    Order(&'a Value),
}

impl Client {
    /// Changes what has the sum `tag`.
    ///
    /// # Errors
    /// As every request; 412 when it has another one by now.
    pub async fn change_if(
        &self,
        path: &Path,
        query: &str,
        tag: &str,
        new: New<'_>,
    ) -> Result<Value, Error> {
        let (method, content, body) = match new {
            New::Text(text) => (Method::PUT, "application/toml", text.to_owned()),
            New::Part(part) => (Method::PATCH, "application/json", part.to_string()),
            New::Order(order) => (Method::POST, "application/json", order.to_string()),
        };
        let request = self.request(method, path, query, content);
        let request = request.header(IF_MATCH, format!("\"{tag}\""));
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
        let whole = async { self.read(self.ask(request, body).await?).await };
        let (code, body) = tokio::time::timeout(ANSWER_TIMEOUT, whole)
            .await
            .unwrap_or_else(|_| Err(trouble::silent(&self.server)))?;
        read_answer(&format!("change {path}"), code, &body)
    }

    /// One document, asked for with a query.
    ///
    /// # Errors
    /// As every request.
    pub async fn get_with(&self, path: &Path, query: &str) -> Result<Value, Error> {
        self.answer(&format!("get {path}"), Method::GET, path, query, None).await
    }
}
