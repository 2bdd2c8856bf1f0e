//! Builders of responses: objects as JSON in the requested form, errors as `Status`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, StatusCode};
use http_body::{Frame, SizeHint};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::negotiate::{MetaVersion, Shape};
use resources::definition::ResourceDefinition;
use resources::engine::{Deleted, ObjectList};
use resources::table::{RowObject, Style, partial, table};
use resources::{Reason, StatusError};

/// Form in which objects of one kind are sent.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    pub definition: &'a ResourceDefinition,
    pub shape: Shape,
    pub row: RowObject,
    pub now: Timestamp,
}

impl Form<'_> {
    /// Formats one object in the requested form.
    pub fn object(&self, object: Value) -> Value {
        match self.shape {
            Shape::Object => object,
            Shape::Metadata(meta) | Shape::MetadataList(meta) => {
                partial(&object, meta.api_version())
            }
            Shape::Table(meta) => self.rows(&object, true, meta),
        }
    }

    /// Formats an object as a Table with one row; later events of a watch omit the columns.
    pub fn rows(&self, object: &Value, with_columns: bool, meta: MetaVersion) -> Value {
        let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
        self.table(std::slice::from_ref(object), metadata, with_columns, meta)
    }

    /// Formats a bookmark for a watch of Tables, as a Table without rows.
    pub fn progress(&self, bookmark: &Value, meta: MetaVersion) -> Value {
        self.table(&[], bookmark["metadata"].clone(), false, meta)
    }

    fn table(
        &self,
        objects: &[Value],
        metadata: Value,
        with_columns: bool,
        meta: MetaVersion,
    ) -> Value {
        let style =
            Style { api_version: meta.api_version(), row: self.row, with_columns, now: self.now };
        table(self.definition, objects, metadata, style)
    }

    /// Formats one object as a list item in the requested form.
    pub fn item(&self, object: Value) -> Value {
        match self.shape {
            Shape::Object => self.items(vec![object]).pop().unwrap_or_default(),
            Shape::Metadata(meta) | Shape::MetadataList(meta) => {
                partial(&object, meta.api_version())
            }
            Shape::Table(meta) => {
                let rows = std::slice::from_ref(&object);
                self.table(rows, Value::Null, false, meta)["rows"][0].take()
            }
        }
    }

    /// Formats a list in the requested form.
    pub fn list(&self, list: ObjectList) -> Value {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(list.revision.to_string()));
        if let Some(token) = list.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        if let Some(remaining) = list.remaining {
            metadata.insert("remainingItemCount".to_owned(), json!(remaining));
        }
        let metadata = Value::Object(metadata);
        match self.shape {
            Shape::Table(meta) => self.table(&list.items, metadata, true, meta),
            Shape::Object => json!({
                "kind": self.definition.list_kind,
                "apiVersion": self.definition.api_version(),
                "metadata": metadata,
                "items": self.items(list.items),
            }),
            Shape::Metadata(meta) | Shape::MetadataList(meta) => {
                let version = meta.api_version();
                let items = list.items.iter().map(|object| partial(object, version));
                json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": version,
                    "metadata": metadata,
                    "items": items.collect::<Vec<_>>(),
                })
            }
        }
    }

    /// Formats list items as [`resources::engine::text`] does: without apiVersion and kind for
    /// Kubernetes' own kinds.
    fn items(&self, mut items: Vec<Value>) -> Vec<Value> {
        let native = self.definition.native;
        for item in items.iter_mut().filter_map(Value::as_object_mut).filter(|_| native) {
            item.retain(|key, _| !["apiVersion", "kind"].contains(&key.as_str()));
        }
        items
    }

    /// Formats the result of a delete: the object if it waits for finalizers (or if the kind
    /// returns deleted objects), otherwise a `Status` Success.
    pub fn deleted(&self, deleted: Deleted) -> Value {
        match deleted {
            Deleted::Finalizing(object) => self.object(object),
            Deleted::Gone(object) if self.definition.returns_deleted => self.object(object),
            Deleted::Gone(object) => {
                let mut details = json!({
                    "name": object["metadata"]["name"],
                    "kind": self.definition.plural,
                    "uid": object["metadata"]["uid"],
                });
                if !self.definition.group.is_empty() {
                    details["group"] = json!(self.definition.group);
                }
                json!({
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": details,
                })
            }
        }
    }
}

/// Returns a JSON response from a value.
pub fn json(code: StatusCode, value: &Value) -> Response {
    text(code, value.to_string().into_bytes())
}

/// Returns a JSON response from its text.
pub fn text(code: StatusCode, text: Vec<u8>) -> Response {
    response(code, Body::from(text))
}

/// Returns a JSON response from the pieces of its text.
pub fn pieces(code: StatusCode, pieces: Vec<Bytes>) -> Response {
    response(code, Body::new(PiecesBody(pieces.into())))
}

fn response(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    headers(&mut response);
    response
}

/// Body of known length, of which each piece is freed after it is sent.
struct PiecesBody(VecDeque<Bytes>);

impl http_body::Body for PiecesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Sets the headers that all JSON responses have: content type, and no caching.
pub fn headers(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
}

/// Returns an error as a response with a `Status`; with `Retry-After: 1` for 429.
pub fn failure(error: &StatusError) -> Response {
    let code = StatusCode::from_u16(error.reason.code());
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, &error.to_value());
    if error.reason == Reason::TooManyRequests {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Adds `Warning` headers, which clients show to users (RFC 7234 section 5.5).
pub fn warn(response: &mut Response, warnings: &[String]) {
    for text in warnings {
        let plain = text.chars().filter(|one| !one.is_control());
        let quoted = plain.collect::<String>().replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
}
