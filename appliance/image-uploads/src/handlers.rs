//! HTTP handler of the API server for uploads of OS images.

use std::sync::Arc;
use std::time::Duration;

use api::os_image::OS_IMAGE;
use apiserver::{Authorizer, User, failure};
use artifact_cache::Error as CacheError;
use artifact_cache::upload::UploadBody;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use axum::{Extension, Json, Router};
use futures_util::{StreamExt as _, stream};
use image_catalog::{CatalogError, CheckedImage, ImageForm, NAMESPACE, UPLOAD_BYTES_MAX};
use objects::ObjectError;
use rbac::Action;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{OsImageError, OsImageUploads, UploadError};

/// Maximum wait for the next piece of a file. The cache also demands a minimum rate.
const SILENCE: Duration = Duration::from_secs(30);

/// Time between a refusal and the first read of the rest of a file.
const RESPONSE_FIRST: Duration = Duration::from_secs(1);
/// Maximum time of reading the rest of a file after a refusal.
const LINGER: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Access {
    uploads: OsImageUploads,
    authorizer: Authorizer,
}

/// Returns the route of the file of an OSImage. A PUT of an image, with `distro`, `version` and
/// perhaps `checksum` in the query, stores the file and returns the OSImage.
///
/// Besides `update` on `osimages/file`, a user needs `create` and `update` on `osimages`, because
/// the upload writes the OSImage.
pub fn router(uploads: OsImageUploads, authorizer: Authorizer) -> Router {
    Router::new()
        .route(
            "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/osimages/{name}/file",
            put(put_file),
        )
        .with_state(Access { uploads, authorizer })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UploadQuery {
    distro: String,
    version: String,
    checksum: String,
}

async fn put_file(
    State(access): State<Access>,
    Path((namespace, name)): Path<(String, String)>,
    query: Result<Query<UploadQuery>, QueryRejection>,
    Extension(user): Extension<User>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let file = Arc::new(Mutex::new(pieces(body.into_data_stream())));
    let admitted = async {
        access.authorize(&user, &namespace, &name).await?;
        let image = checked(&namespace, name, query, &headers)?;
        access.uploads.check(&image).await?;
        Ok(image)
    };
    let stored = match admitted.await {
        Ok(image) => {
            let stored = access.uploads.store(image, shared(Arc::clone(&file))).await;
            stored.map_err(Refusal::from)
        }
        Err(refusal) => Err(refusal),
    };
    match stored {
        Ok(object) => {
            // The cache does not read a file that it has already, but the client sends it.
            let mut rest = file.lock().await;
            while let Some(Ok(_)) = rest.next().await {}
            Ok(Json(object).into_response())
        }
        Err(refusal) => {
            tokio::spawn(linger(file));
            Err(refusal)
        }
    }
}

/// Reads for a while what a client still sends after a refusal. Some clients, such as curl 7.88,
/// report a broken stream instead of the response if the box stops reading at once.
async fn linger(file: Arc<Mutex<UploadBody>>) {
    // A read before the response would invite the client to send the file (100-continue).
    tokio::time::sleep(RESPONSE_FIRST).await;
    let mut rest = file.lock().await;
    let _ = timeout(LINGER, async { while let Some(Ok(_)) = rest.next().await {} }).await;
}

impl Access {
    /// Checks the rights to the OSImage that the upload writes.
    async fn authorize(&self, user: &User, namespace: &str, name: &str) -> Result<(), Refusal> {
        let verbs = ["create", "update"];
        let (group, plural) = (OS_IMAGE.group, OS_IMAGE.plural);
        let actions = verbs.map(|verb| Action::on(verb, group, plural, namespace, name));
        let allowed = self.authorizer.allowed(user, &actions).await;
        let Some((verb, _)) = verbs.iter().zip(allowed).find(|(_, allowed)| !allowed) else {
            return Ok(());
        };
        let why = format!(
            "{plural}.{group} {name:?} is forbidden: User {:?} cannot {verb} resource {plural:?} \
             in API group {group:?} in the namespace {namespace:?}",
            user.name
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, "Forbidden", why))
    }
}

/// Checks path, query and headers of an upload.
fn checked(
    namespace: &str,
    name: String,
    query: Result<Query<UploadQuery>, QueryRejection>,
    headers: &HeaderMap,
) -> Result<CheckedImage, Refusal> {
    let Query(query) = query
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", error.body_text()))?;
    if namespace != NAMESPACE {
        let why = format!(
            "an uploaded image belongs to the namespace {NAMESPACE:?}, not to {namespace:?}, \
             because its file has the name of the OSImage"
        );
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", why));
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    if length.and_then(|it| it.parse::<u64>().ok()).is_some_and(|it| it > UPLOAD_BYTES_MAX) {
        let limit = stdx::bytes(UPLOAD_BYTES_MAX);
        let why = format!("the file is too large: an image may have {limit}");
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", why));
    }
    let UploadQuery { distro, version, checksum } = query;
    let form = ImageForm { name, distro, version, url: String::new(), checksum };
    Ok(form.check(true).map_err(OsImageError::from)?)
}

/// Returns the pieces of a file. The last item of a file that is cut off, too large or too slow is
/// an error.
fn pieces(body: BodyDataStream) -> UploadBody {
    let pieces = stream::unfold(Some((body, 0_u64)), |state| async {
        let (mut body, mut bytes) = state?;
        let piece = match timeout(SILENCE, body.next()).await {
            Ok(None) => return None,
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(error))) => return Some((Err(stdx::chain(&error)), None)),
            Err(_) => {
                let why = format!("no data arrived for {} seconds", SILENCE.as_secs());
                return Some((Err(why), None));
            }
        };
        bytes += piece.len() as u64;
        if bytes > UPLOAD_BYTES_MAX {
            let why = format!("it has more than {}", stdx::bytes(UPLOAD_BYTES_MAX));
            return Some((Err(why), None));
        }
        Some((Ok(piece), Some((body, bytes))))
    });
    Box::pin(pieces.fuse())
}

/// Returns a reader of `file` whose end leaves the unread pieces in `file`.
fn shared(file: Arc<Mutex<UploadBody>>) -> UploadBody {
    Box::pin(stream::unfold(file, |file| async {
        let piece: Option<Result<Bytes, String>> = file.lock().await.next().await;
        piece.map(|piece| (piece, file))
    }))
}

/// Error response to an upload.
struct Refusal {
    status: StatusCode,
    reason: &'static str,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, reason: &'static str, message: String) -> Self {
        Self { status, reason, message }
    }
}

impl From<OsImageError> for Refusal {
    fn from(error: OsImageError) -> Self {
        let (status, reason) = match &error {
            OsImageError::File(error) => of_file(error),
            OsImageError::Object(error) => of_object(error),
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = stdx::chain(&error), "cannot store an uploaded image");
        }
        Self::new(status, reason, stdx::with_hint(&error))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        failure(self.status, self.reason, &self.message)
    }
}

fn of_file(error: &UploadError) -> (StatusCode, &'static str) {
    match error {
        UploadError::NoCache => (StatusCode::NOT_FOUND, "NotFound"),
        UploadError::Format(_) => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        UploadError::Cut(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
        UploadError::Pin(_) => (StatusCode::CONFLICT, "Conflict"),
        UploadError::Cache(error) => match **error {
            CacheError::Checksum { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
            CacheError::CacheFull { .. } => {
                (StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage")
            }
            // Another upload of this file is running.
            CacheError::Fetch { passing: true, .. } => (StatusCode::CONFLICT, "Conflict"),
            CacheError::Fetch { passing: false, .. } => (StatusCode::BAD_REQUEST, "BadRequest"),
            CacheError::Artifact { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        },
    }
}

fn of_object(error: &CatalogError) -> (StatusCode, &'static str) {
    match error {
        CatalogError::Fields(_) | CatalogError::Install(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "Invalid")
        }
        CatalogError::Taken(_) => (StatusCode::CONFLICT, "AlreadyExists"),
        CatalogError::Missing(_) => (StatusCode::NOT_FOUND, "NotFound"),
        CatalogError::Object(ObjectError::Invalid(_)) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "Invalid")
        }
        CatalogError::Object(
            ObjectError::Conflict(_) | ObjectError::AlreadyExists(_) | ObjectError::NotFound(_),
        ) => (StatusCode::CONFLICT, "Conflict"),
        CatalogError::Object(_) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
    }
}
