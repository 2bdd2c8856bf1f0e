//! Request bodies: bounded, and JSON or refused.

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::Value;

use super::negotiate::media_type;
use super::query::{Query, dry_run};
use crate::engine::{DeleteOptions, MAX_OBJECT_BYTES, Patch};
use crate::status_error::{Reason, StatusError};

/// Largest request body in bytes (Kubernetes' limit too).
pub const MAX_BODY: usize = MAX_OBJECT_BYTES;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// An object to create or replace.
pub async fn object(headers: &HeaderMap, body: Body) -> Result<Value, StatusError> {
    expect(headers, &[JSON])?;
    parse(&read(body).await?)
}

/// A patch, of the type its media type says.
pub async fn patch(headers: &HeaderMap, body: Body) -> Result<Patch, StatusError> {
    expect(headers, &[JSON_PATCH, MERGE_PATCH])?;
    let value = parse(&read(body).await?)?;
    if media_type(headers) == JSON_PATCH { Patch::json(&value) } else { Patch::merge(value) }
}

/// `DeleteOptions`, which may be missing, and may leave out what they are.
pub async fn delete_options(
    headers: &HeaderMap,
    query: &Query,
    body: Body,
) -> Result<DeleteOptions, StatusError> {
    let mut options = query.delete()?;
    let bytes = read(body).await?;
    if bytes.is_empty() {
        return Ok(options);
    }
    expect(headers, &[JSON])?;
    let value = parse(&bytes)?;
    let text = |field: &str| value["preconditions"][field].as_str().map(str::to_owned);
    options.uid = text("uid");
    options.resource_version = text("resourceVersion");
    for listed in value["dryRun"].as_array().into_iter().flatten() {
        options.dry_run |= dry_run(Some(listed.as_str().unwrap_or_default()))?;
    }
    Ok(options)
}

fn expect(headers: &HeaderMap, served: &[&str]) -> Result<(), StatusError> {
    let media = media_type(headers);
    // A patch without a type would be a guess.
    let known = served.contains(&media.as_str());
    if known {
        return Ok(());
    }
    Err(StatusError::new(
        Reason::UnsupportedMediaType,
        format!(
            "the body of the request was in an unknown format ({media}) - accepted media types \
             include: {}",
            served.join(", ")
        ),
    ))
}

async fn read(body: Body) -> Result<Bytes, StatusError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(StatusError::new(
            Reason::RequestEntityTooLarge,
            format!("the request body is larger than {MAX_BODY} bytes"),
        )),
        Err(_) => Err(StatusError::bad_request("the request body could not be read to its end")),
    }
}

/// JSON with at most 128 levels, the parser's own bound.
fn parse(bytes: &[u8]) -> Result<Value, StatusError> {
    // The parser's text names a line and a column, never what stands there.
    serde_json::from_slice(bytes)
        .map_err(|error| StatusError::bad_request(format!("the body is not JSON: {error}")))
}
