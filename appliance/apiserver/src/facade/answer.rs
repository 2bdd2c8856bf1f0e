//! Answers: JSON in the shape the client asked for, failures as `Status`.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::negotiate::Shape;
use crate::definition::ResourceDefinition;
use crate::engine::{Deleted, ObjectList};
use crate::status_error::{Reason, StatusError};
use crate::table::{RowObject, partial, table};

/// How objects of one kind are put into an answer.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    pub definition: &'a ResourceDefinition,
    pub shape: Shape,
    pub row: RowObject,
    pub now: Timestamp,
}

impl Form<'_> {
    /// One object.
    pub fn object(&self, object: Value) -> Value {
        match self.shape {
            Shape::Object => object,
            Shape::Metadata => partial(&object),
            Shape::Table => self.rows(&object, true),
        }
    }

    /// An object as a Table of one row; later events of a watch leave the columns out.
    pub fn rows(&self, object: &Value, with_columns: bool) -> Value {
        let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
        let objects = std::slice::from_ref(object);
        table(self.definition, objects, metadata, self.row, with_columns, self.now)
    }

    /// A list.
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
            Shape::Table => table(self.definition, &list.items, metadata, self.row, true, self.now),
            Shape::Object => json!({
                "kind": format!("{}List", self.definition.kind),
                "apiVersion": self.definition.api_version(),
                "metadata": metadata,
                "items": list.items,
            }),
            Shape::Metadata => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": list.items.iter().map(partial).collect::<Vec<_>>(),
            }),
        }
    }

    /// What a delete says: a Success when the object is gone, the object while it waits.
    pub fn deleted(&self, deleted: Deleted) -> Value {
        match deleted {
            Deleted::Finalizing(object) => self.object(object),
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

/// A JSON answer.
pub fn json(code: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = code;
    headers(&mut response);
    response
}

/// The headers every JSON answer has.
pub fn headers(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
}

/// A failure.
pub fn failure(error: &StatusError) -> Response {
    let code = StatusCode::from_u16(error.reason.code());
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, &error.to_value());
    if error.reason == Reason::TooManyRequests {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
