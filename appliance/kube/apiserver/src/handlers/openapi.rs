//! OpenAPI documents over HTTP (kube-openapi, `pkg/handler3`, `pkg/handler`), each with an ETag.
//! Clients may cache a v3 document forever under a URL with its hash.

use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::App;
use crate::wire::accept;
use crate::wire::documents::{self, Document};
use crate::wire::path::OpenApiName;
use resources::{Reason, StatusError};

/// Media types of the v2 document as protobuf; the second is an older spelling.
const PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// Serves `/openapi/v2`, `/openapi/v3` and the paths below it.
///
/// # Errors
/// 404 for a group or version that is not served, 406 for an unsupported format.
pub(super) async fn respond(
    app: &App,
    mut name: OpenApiName,
    headers: &HeaderMap,
    query: &str,
) -> Result<Response, StatusError> {
    if name == OpenApiName::Swagger {
        name = swagger_form(headers)?;
    } else {
        accept::takes_plain(headers)?;
    }
    let (specifications, registry) = (app.specifications.clone(), app.engine.registry());
    let asked = name.clone();
    // The first document of each kind takes a while, so it is made on a blocking thread.
    let made = tokio::task::spawn_blocking(move || specifications.document(&registry, &asked));
    let document =
        made.await.map_err(|error| StatusError::internal("make the OpenAPI document", &error))?;
    let document = document.ok_or_else(StatusError::no_such_resource)?;
    let OpenApiName::Version(version) = &name else {
        return Ok(whole(&name, &document, headers));
    };
    let hash = hash(query);
    if hash.is_some_and(|hash| hash != document.tag()) {
        return moved(version, &document);
    }
    let mut response = documents::conditional(&document, headers);
    if hash.is_some() {
        let keep = HeaderValue::from_static("public, immutable, max-age=31536000");
        response.headers_mut().insert(CACHE_CONTROL, keep);
    }
    Ok(response)
}

fn whole(name: &OpenApiName, document: &Document, headers: &HeaderMap) -> Response {
    let mut response = documents::conditional(document, headers);
    if *name == OpenApiName::SwaggerProtobuf && response.status() == StatusCode::OK {
        let form = HeaderValue::from_static(PROTOBUF[1]);
        response.headers_mut().insert(CONTENT_TYPE, form);
    }
    response
}

/// Returns the form of the v2 document (JSON or protobuf) that the Accept header requests.
fn swagger_form(headers: &HeaderMap) -> Result<OpenApiName, StatusError> {
    let mut clauses = accept::clauses(headers).peekable();
    if clauses.peek().is_none() {
        return Ok(OpenApiName::Swagger);
    }
    for clause in clauses {
        if PROTOBUF.contains(&clause.media) {
            return Ok(OpenApiName::SwaggerProtobuf);
        }
        if clause.is_json() {
            return Ok(OpenApiName::Swagger);
        }
    }
    let forms = format!("application/json, {}", PROTOBUF[0]);
    Err(StatusError::new(
        Reason::NotAcceptable,
        format!("only the following media types are accepted: {forms}"),
    ))
}

fn hash(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("hash="))
}

/// Returns a redirect (301) to the URL with the hash of the present document.
fn moved(version: &str, document: &Document) -> Result<Response, StatusError> {
    let address = format!("/openapi/v3/{version}?hash={}", document.tag());
    let address = HeaderValue::from_str(&address).map_err(|_| StatusError::no_such_resource())?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(LOCATION, address);
    Ok(response)
}
