//! HTTP handlers of the API server for images.

use std::sync::Arc;

use apiserver::failure;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use status::image::{ImageOperation, ImageRequest};

use super::{ImageError, Images, Inner};

/// Returns the routes of `/apis/tinbox.dev/v1alpha1/images`: GET returns [`status::image::Images`];
/// POST of an [`ImageRequest`] returns a message.
pub fn router(images: Images) -> Router {
    Router::new().route("/apis/tinbox.dev/v1alpha1/images", get(list).post(act)).with_state(images)
}

async fn list(State(images): State<Images>) -> Response {
    let look = |inner: &Arc<Inner>| Ok(Json(inner.report()).into_response());
    off_the_runtime(images, look).await
}

async fn act(State(images): State<Images>, Json(order): Json<ImageRequest>) -> Response {
    let act = move |inner: &Arc<Inner>| {
        carry_out(inner, &order).map(|it| Json(json!({ "message": it })).into_response())
    };
    off_the_runtime(images, act).await
}

/// Carries out an operation on an image. Returns a message.
fn carry_out(inner: &Arc<Inner>, order: &ImageRequest) -> Result<String, ImageError> {
    match order.act {
        ImageOperation::Pin => inner.pin(&order.image),
        ImageOperation::Unpin => inner.unpin(&order.image),
        ImageOperation::Remove => inner.remove(&order.image),
    }
}

impl Images {
    /// Carries out an operation on an image. Returns a message.
    ///
    /// # Errors
    /// The image is unknown or in use; the error is a phrase.
    pub async fn request(&self, order: ImageRequest) -> Result<String, String> {
        let inner = self.0.clone().ok_or("the box has no image cache")?;
        let done = tokio::task::spawn_blocking(move || carry_out(&inner, &order)).await;
        done.map_err(|error| error.to_string())?.map_err(ImageError::why)
    }
}

/// Runs `work` on a blocking thread, because `work` reads the folders of the cache.
async fn off_the_runtime(
    images: Images,
    work: impl FnOnce(&Arc<Inner>) -> Result<Response, ImageError> + Send + 'static,
) -> Response {
    let Some(inner) = images.0 else {
        let why = "the box has no image cache: its configuration has no [images]";
        return failure(StatusCode::NOT_FOUND, "NotFound", why);
    };
    match tokio::task::spawn_blocking(move || work(&inner)).await {
        Ok(Ok(response)) => response,
        Ok(Err(ImageError::Missing(why))) => failure(StatusCode::NOT_FOUND, "NotFound", &why),
        Ok(Err(ImageError::Conflict(why))) => failure(StatusCode::CONFLICT, "Conflict", &why),
        Ok(Err(ImageError::Invalid(why))) => failure(StatusCode::BAD_REQUEST, "BadRequest", &why),
        Err(error) => {
            tracing::error!(%error, "cannot read the images");
            let why = "cannot read the images";
            failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why)
        }
    }
}
