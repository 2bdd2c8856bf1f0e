//! Page of the operating system images.

use askama::Template;
use image_catalog::{FieldError, ImageForm, ImageSummary, KNOWN, KnownImage};
use status::image::ImageState;
use status::view::StatusView;

use crate::html::{mistakes_of, rendered};
use crate::rights::{Permission, Visitor};
use crate::shell::with_rail;

/// Entry of the navigation.
const HERE: &str = "/images";
/// Link from the page of the cache.
pub const LINK: &str = "<p><a href=\"/os-images\">OS images that machines can install</a></p>\n";

#[derive(Template)]
#[template(path = "os-images.html")]
struct OsImages<'a> {
    csrf: &'a str,
    /// True for a visitor who may change OSImages.
    edits: bool,
    rows: Vec<Row<'a>>,
    known: Vec<&'static KnownImage>,
    page: &'a OsImagesPage<'a>,
}

struct Row<'a> {
    image: &'a ImageSummary,
    /// State of the file in the cache.
    state: String,
    /// True if the file is not in the cache, and the box can fetch it.
    fetches: bool,
}

/// Content of the page.
#[derive(Debug, Default)]
pub struct OsImagesPage<'a> {
    /// OSImages of the box.
    pub images: &'a [ImageSummary],
    /// Form as it was sent; empty at first.
    pub form: ImageForm,
    /// True if the form with a file was sent.
    pub is_upload: bool,
    /// Mistakes of the fields, shown beside them.
    pub mistakes: &'a [FieldError],
    /// Reason why the last request was refused; may be empty.
    pub error: &'a str,
}

impl OsImages<'_> {
    /// Returns a field of the form that was sent; empty for the other form.
    fn value<'a>(&self, is_upload: bool, value: &'a str) -> &'a str {
        if self.page.is_upload == is_upload { value } else { "" }
    }

    /// Returns the mistakes of a field as a paragraph; empty for the other form.
    fn mistake(&self, is_upload: bool, field: &str) -> String {
        if self.page.is_upload != is_upload {
            return String::new();
        }
        mistakes_of(field, self.page.mistakes)
    }
}

/// Renders the page of the OSImages.
pub fn list(view: &StatusView, who: &Visitor, page: &OsImagesPage<'_>) -> String {
    let edits = who.may(Permission::EditOsImages);
    let is_there = |known: &&KnownImage| page.images.iter().any(|it| it.name == known.name);
    let body = rendered(&OsImages {
        csrf: &who.csrf,
        edits,
        rows: page.images.iter().map(|image| row(view, image)).collect(),
        known: KNOWN.iter().filter(|it| !is_there(it)).collect(),
        page,
    });
    with_rail(view, who, ("OS images", HERE), &body)
}

fn row<'a>(view: &StatusView, image: &'a ImageSummary) -> Row<'a> {
    let cached = view.images.items.iter().find(|it| it.origin == image.url);
    let state = match cached {
        None if view.images.capacity == 0 => "fetched by machines".to_owned(),
        // The view is older than the upload: a lost file has an entry of its own.
        None if image.is_uploaded => "on this box".to_owned(),
        None => "fetched when a machine needs it".to_owned(),
        Some(cached) if cached.state == ImageState::Ready => "on this box".to_owned(),
        Some(cached) => cached.line(),
    };
    let fetches = cached.is_none() && view.images.capacity > 0 && !image.is_uploaded;
    Row { image, state, fetches }
}
