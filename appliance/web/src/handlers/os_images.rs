//! OS images: list, upload, images by URL and of publishers, deletion.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use futures_util::StreamExt as _;
use image_catalog::{CatalogError, ImageCatalog, ImageForm, UPLOAD_BYTES_MAX};
use page_http::multipart::{self, FormError};
use serde::Deserialize;
use status::image::{ImageOperation, ImageRequest};

use super::access::foreign;
use super::audit::about;
use super::{Caller, FileBody, PageResponse, Site, SiteState};
use crate::response::{html, see, text};
use web_pages::os_images::{OsImagesPage, list};
use web_pages::rights::Visitor;

/// Path of the list.
const LIST: &str = "/os-images";

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route(LIST, get(show).post(add))
        .route("/os-images/upload", post(upload))
        .route("/os-images/{operation}", post(change))
}

impl Site {
    fn catalog(&self) -> ImageCatalog {
        ImageCatalog::new(Arc::clone(&self.source.machine_actions().objects))
    }
}

/// Form that was sent, and the reason why it was refused.
#[derive(Default)]
struct Sent {
    form: ImageForm,
    is_upload: bool,
    error: Option<CatalogError>,
    /// Reason that is not an error of the catalog; may be empty.
    why: String,
    status: StatusCode,
}

impl Sent {
    fn refused(form: ImageForm, is_upload: bool, error: CatalogError) -> Self {
        let status = match &error {
            CatalogError::Fields(_) | CatalogError::Taken(_) | CatalogError::Install(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            CatalogError::Missing(_) => StatusCode::NOT_FOUND,
            CatalogError::Object(_) => StatusCode::CONFLICT,
        };
        Self { form, is_upload, error: Some(error), status, ..Self::default() }
    }
}

async fn page(site: &Site, who: &Visitor, sent: Sent) -> PageResponse {
    let view = site.view().await;
    let (images, unread) = match site.catalog().list().await {
        Ok(images) => (images, String::new()),
        Err(error) => (Vec::new(), stdx::sentences(&error)),
    };
    let mistakes = sent.error.as_ref().map(CatalogError::fields).unwrap_or_default();
    let why = match &sent.error {
        Some(error) if mistakes.is_empty() => stdx::sentences(error),
        Some(_) => String::new(),
        None => sent.why,
    };
    let error = if why.is_empty() { unread } else { why };
    let (form, is_upload) = (sent.form, sent.is_upload);
    let shown =
        OsImagesPage { images: &images, form, is_upload, mistakes: &mistakes, error: &error };
    html(sent.status, list(&view, who, &shown))
}

async fn show(State(site): SiteState, who: Caller) -> PageResponse {
    page(&site, &who, Sent::default()).await
}

#[derive(Deserialize)]
struct UrlForm {
    csrf: String,
    name: String,
    distro: String,
    version: String,
    url: String,
    #[serde(default)]
    checksum: String,
}

/// Creates the OSImage of a file on another server.
async fn add(State(site): SiteState, who: Caller, Form(sent): Form<UrlForm>) -> PageResponse {
    let UrlForm { csrf, name, distro, version, url, checksum } = sent;
    if !who.sent(&csrf) {
        return foreign();
    }
    let form = ImageForm { name, distro, version, url, checksum };
    let saved = async {
        let image = form.check(false)?;
        let url = image.url.clone().unwrap_or_default();
        site.catalog().save(&image, &url, image.format()).await
    };
    match saved.await {
        Ok(_) => see(LIST),
        Err(error) => page(&site, &who, Sent::refused(form, false, error)).await,
    }
}

#[derive(Deserialize)]
struct NameForm {
    csrf: String,
    name: String,
}

/// Adds an image of a publisher, fetches the file of an OSImage, or deletes an OSImage.
async fn change(
    State(site): SiteState,
    Path(operation): Path<String>,
    who: Caller,
    Form(form): Form<NameForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let done = match operation.as_str() {
        "known" => site.catalog().add_known(&form.name).await.map(drop),
        "fetch" => return fetch(&site, &who, &form.name).await,
        "delete" => delete(&site, &form.name).await,
        _ => return text(StatusCode::NOT_FOUND, "This page does not exist on this box."),
    };
    let answer = match done {
        Ok(()) => see(LIST),
        Err(error) => page(&site, &who, Sent::refused(ImageForm::default(), false, error)).await,
    };
    about(answer, &form.name)
}

/// Pins the file of an OSImage, so that the box fetches it.
async fn fetch(site: &Site, who: &Visitor, name: &str) -> PageResponse {
    let images = site.catalog().list().await;
    let image = images.and_then(|images| {
        let named = images.into_iter().find(|it| it.name == name);
        named.ok_or_else(|| CatalogError::Missing(name.to_owned()))
    });
    let image = match image {
        Ok(image) => image,
        Err(error) => {
            return page(site, who, Sent::refused(ImageForm::default(), false, error)).await;
        }
    };
    let request = ImageRequest { image: image.url, act: ImageOperation::Pin };
    match site.source.image(request).await {
        Ok(_) => {
            *site.shown.lock().await = None;
            see(LIST)
        }
        Err(why) => {
            page(site, who, Sent { why, status: StatusCode::CONFLICT, ..Sent::default() }).await
        }
    }
}

async fn delete(site: &Site, name: &str) -> Result<(), CatalogError> {
    if let Some(image) = site.catalog().remove(name).await? {
        // A file that was not pinned stays as it is.
        let request = ImageRequest { image, act: ImageOperation::Unpin };
        let _ = site.source.image(request).await;
    }
    *site.shown.lock().await = None;
    Ok(())
}

/// Stores an uploaded image. Fields of the form, in order: `csrf`, `name`, `distro`, `version`,
/// `checksum`, `file`.
async fn upload(
    State(site): SiteState,
    headers: HeaderMap,
    who: Caller,
    body: Body,
) -> PageResponse {
    let limited = multipart::Form::with_limit(&headers, body.into_data_stream(), UPLOAD_BYTES_MAX);
    let mut parts = match limited {
        Ok(parts) => parts,
        Err(broken) => return unread(&site, &who, ImageForm::default(), broken).await,
    };
    let csrf = parts.field("csrf").await;
    if !csrf.is_ok_and(|given| who.sent(&given)) {
        return foreign();
    }
    let mut form = ImageForm::default();
    if let Err(broken) = read_fields(&mut parts, &mut form).await {
        return unread(&site, &who, form, broken).await;
    }
    let checked = async {
        let image = form.check(true)?;
        site.catalog().check_name(&image).await.map(|()| image)
    };
    let image = match checked.await {
        Ok(image) => image,
        Err(error) => {
            // A browser shows the response only after it has sent the file.
            let (sender, _) = multipart::file_channel();
            let _ = parts.pass_whole("file", sender).await;
            return page(&site, &who, Sent::refused(form, true, error)).await;
        }
    };
    let (sender, pieces) = multipart::file_channel();
    let pieces: FileBody = Box::pin(pieces.map(|piece| piece.map_err(|error| error.to_string())));
    let stored = site.source.upload_image(image, pieces);
    let (stored, passed) = tokio::join!(stored, parts.pass_whole("file", sender));
    match (stored, passed) {
        (Ok(()), _) => {
            *site.shown.lock().await = None;
            see(LIST)
        }
        (Err(_), Err(broken)) => unread(&site, &who, form, broken).await,
        (Err(why), Ok(())) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            page(&site, &who, Sent { form, is_upload: true, why, status, ..Sent::default() }).await
        }
    }
}

async fn read_fields(parts: &mut multipart::Form, form: &mut ImageForm) -> Result<(), FormError> {
    form.name = parts.field("name").await?;
    form.distro = parts.field("distro").await?;
    form.version = parts.field("version").await?;
    form.checksum = parts.field("checksum").await?;
    Ok(())
}

/// Renders the page for a form that was not received as a whole.
async fn unread(site: &Site, who: &Visitor, form: ImageForm, broken: FormError) -> PageResponse {
    let (why, status) = (broken.to_string(), StatusCode::BAD_REQUEST);
    page(site, who, Sent { form, is_upload: true, why, status, ..Sent::default() }).await
}
