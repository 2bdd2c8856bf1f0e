//! Parser of request bodies: JSON, YAML, protobuf and patch formats, limited in size.

use std::cell::RefCell;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use schema::FieldError;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::counted::TooManyBytes;
use super::decode::Decoded;
use super::negotiate::media_type;
use super::query::{Query, dry_run_error, refuse};
use resources::engine::{DeleteOptions, MAX_OBJECT_BYTES, Patch, Propagation};
use resources::{Reason, StatusError};

/// Maximum size of a request body: 3 MiB, as in Kubernetes.
pub const MAX_BODY: usize = MAX_OBJECT_BYTES;

/// Size in bytes above which a body is decoded on a blocking thread, with the permit of [`LARGE`].
const LARGE_BODY: usize = 64 * 1024;
/// Permit for the only request with a decoded large body. A decoded body takes many times its
/// bytes, so other large bodies wait undecoded.
static LARGE: Semaphore = Semaphore::const_new(1);

tokio::task_local! {
    /// Permit of the running request; `None` for a request without a large body.
    static TURN: RefCell<Option<SemaphorePermit<'static>>>;
}

/// Runs the future of a request. The permit for a large body is held until the future ends.
pub async fn in_turn<T>(work: impl Future<Output = T>) -> T {
    TURN.scope(RefCell::new(None), work).await
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Parses an object to create or replace: JSON, YAML or, for `native` kinds, protobuf. Adds
/// messages about duplicate fields to `found`.
pub async fn object(
    headers: &HeaderMap,
    body: Body,
    native: bool,
    found: &mut Vec<String>,
) -> Result<Value, StatusError> {
    let known = [JSON, YAML, kube_protobuf::MEDIA_TYPE];
    expect(headers, if native { &known } else { &known[..2] })?;
    let media = media_type(headers);
    let decoded = apart(read(body).await?, move |bytes| value(&media, bytes, ("", ""))).await?;
    found.extend(decoded.duplicates);
    Ok(decoded.value)
}

/// Parses a patch of the format in the media type; strategic merge patches only for `native` kinds.
/// Adds messages about duplicate fields to `found`.
pub async fn patch(
    headers: &HeaderMap,
    body: Body,
    native: bool,
    found: &mut Vec<String>,
) -> Result<Patch, StatusError> {
    // An apply has its own function, but the message lists its media type as supported.
    let known = match native {
        true => &[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY][..],
        false => &[JSON_PATCH, MERGE_PATCH, APPLY],
    };
    expect(headers, known)?;
    let decoded = apart(read(body).await?, decoded).await?;
    found.extend(decoded.duplicates);
    Ok(match media_type(headers).as_str() {
        JSON_PATCH => Patch::json(&decoded.value)?,
        STRATEGIC_PATCH => Patch::strategic(decoded.value)?,
        _ => Patch::merge(decoded.value)?,
    })
}

/// Returns true if the media type is `application/apply-patch+yaml`.
pub fn is_apply(headers: &HeaderMap) -> bool {
    media_type(headers) == APPLY
}

/// Parses an apply configuration in YAML or JSON. Adds messages about duplicate fields to `found`.
pub async fn configuration(body: Body, found: &mut Vec<String>) -> Result<Value, StatusError> {
    let decoded = apart(read(body).await?, |bytes| {
        if let Ok(decoded) = Decoded::json(bytes) {
            return Ok(decoded);
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Decoded::default());
        }
        yaml(bytes)
    });
    let decoded = decoded.await?;
    found.extend(decoded.duplicates);
    Ok(decoded.value)
}

/// Parses `DeleteOptions` from the body (its kind is optional) or, without a body, from the query.
pub async fn delete_options(
    headers: &HeaderMap,
    query: &Query,
    body: Body,
) -> Result<DeleteOptions, StatusError> {
    let bytes = read(body).await?;
    if bytes.is_empty() {
        return read_delete_options(&query.delete()?);
    }
    expect(headers, &[JSON, YAML, kube_protobuf::MEDIA_TYPE])?;
    let (media, expected) = (media_type(headers), ("v1", "DeleteOptions"));
    let options = apart(bytes, move |bytes| value(&media, bytes, expected)).await?.value;
    let text = |field: &str| options[field].as_str().filter(|text| !text.is_empty());
    if let Some(kind) = text("kind").filter(|kind| *kind != "DeleteOptions") {
        // For example the object itself, whose uid the client wants to use as a precondition.
        let version = text("apiVersion").unwrap_or("v1");
        let why = "a deletion takes DeleteOptions";
        let why = format!("no kind {kind:?} is registered for version {version:?}: {why}");
        return Err(StatusError::bad_request(why));
    }
    read_delete_options(&options)
}

/// Parses and checks `meta.k8s.io/v1 DeleteOptions`.
pub fn read_delete_options(options: &Value) -> Result<DeleteOptions, StatusError> {
    let mut errors = Vec::new();
    let dry = options["dryRun"].as_array().into_iter().flatten();
    let dry: Vec<&str> = dry.map(|one| one.as_str().unwrap_or_default()).collect();
    errors.extend(dry_run_error(&dry));
    let policy = &options["propagationPolicy"];
    let propagation = match policy.as_str() {
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        _ if policy.is_null() => None,
        _ => {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported("propagationPolicy", policy, &known));
            None
        }
    };
    // `orphanDependents` is the deprecated form of `propagationPolicy`.
    let orphans = options["orphanDependents"].as_bool();
    if orphans.is_some() && !policy.is_null() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy, why));
    }
    refuse("DeleteOptions", &errors)?;
    let older = orphans.map(|orphans| match orphans {
        true => Propagation::Orphan,
        false => Propagation::Background,
    });
    let text = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
    Ok(DeleteOptions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        propagation: propagation.or(older),
        dry_run: !dry.is_empty(),
    })
}

fn expect(headers: &HeaderMap, served: &[&str]) -> Result<(), StatusError> {
    let media = media_type(headers);
    // A patch without a media type is ambiguous, so it is refused.
    let known = served.contains(&media.as_str());
    if known {
        return Ok(());
    }
    Err(StatusError::new(
        Reason::UnsupportedMediaType,
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
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
        Err(error) if TooManyBytes::caused(error.as_ref()) => Err(StatusError::too_many_requests()),
        Err(_) => Err(StatusError::bad_request("the request body could not be read to its end")),
    }
}

/// Decodes a body, on a blocking thread above [`LARGE_BODY`], so as not to delay other connections.
async fn apart(
    bytes: Bytes,
    decode: impl FnOnce(&[u8]) -> Result<Decoded, StatusError> + Send + 'static,
) -> Result<Decoded, StatusError> {
    if bytes.len() <= LARGE_BODY {
        return decode(&bytes);
    }
    let failed =
        |error: &(dyn std::error::Error + 'static)| StatusError::internal("decode a body", error);
    let turn = LARGE.acquire().await.map_err(|error| failed(&error))?;
    // Outside a request there is no task-local, and the permit is released at once.
    let _ = TURN.try_with(|kept| kept.replace(Some(turn)));
    let decoded = tokio::task::spawn_blocking(move || decode(&bytes)).await;
    decoded.map_err(|error| failed(&error))?
}

/// Decodes a body by media type: JSON, YAML or protobuf. `expected` is the apiVersion and kind of a
/// protobuf body that contains neither.
fn value(media: &str, bytes: &[u8], expected: (&str, &str)) -> Result<Decoded, StatusError> {
    match media {
        YAML => return yaml(bytes),
        kube_protobuf::MEDIA_TYPE => {}
        _ => return decoded(bytes),
    }
    kube_protobuf::decode(bytes, expected)
        .map(|value| Decoded { value, ..Decoded::default() })
        .map_err(|error| StatusError::bad_request(error.to_string()))
}

fn decoded(bytes: &[u8]) -> Result<Decoded, StatusError> {
    Decoded::json(bytes)
        .map_err(|error| StatusError::bad_request(format!("the body is not JSON: {error}")))
}

/// Decodes the first document of a YAML body.
fn yaml(bytes: &[u8]) -> Result<Decoded, StatusError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| StatusError::bad_request("the body is not YAML: it is not UTF-8"))?;
    Decoded::yaml(text)
        .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))
}
