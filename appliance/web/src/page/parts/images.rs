//! Image cache: files and free space.

use askama::Template;
use status::image::{Image, ImageState};
use status::plain;
use status::view::StatusView;
use status::view::moment::bytes;
use status::view::system::percent;
use status::words::{Shape, Tone};

use super::machines::bar;
use super::{design, escaped, rendered, share};

#[derive(Template)]
#[template(path = "images.html")]
struct Images {
    rows: Vec<Row>,
}

struct Row {
    tone: &'static str,
    shape: &'static str,
    line: String,
    name: String,
    origin: String,
    size: String,
    stays: String,
    used: String,
}

/// Renders the free space of the cache and the list of files.
pub fn images(view: &StatusView) -> String {
    let images = &view.images;
    if images.capacity == 0 {
        let none = "This box has no image cache: its configuration has no <code>[images]</code>. \
            Machines fetch images by themselves.";
        return format!("<p class=\"card\">{none}</p>");
    }
    let full = percent(images.used, images.capacity);
    let mut html = format!(
        "<div class=\"card\">{}<p>{} used.</p></div>",
        bar(full, "Cache"),
        share(images.used, images.capacity)
    );
    if !images.warning.is_empty() {
        let warning = escaped(&plain(&images.warning));
        html.push_str(&format!("<p class=\"card wait\">{warning}</p>"));
    }
    html.push_str(&rendered(&Images {
        rows: images.items.iter().map(|it| row(view, it)).collect(),
    }));
    html
}

fn row(view: &StatusView, image: &Image) -> Row {
    let (tone, shape) = match image.state {
        ImageState::Ready => (Tone::Good, Shape::FilledDot),
        ImageState::Fetching => (Tone::Busy, Shape::Arc),
        ImageState::Waiting => (Tone::Waiting, Shape::HalfDot),
        ImageState::Failed => (Tone::Bad, Shape::Cross),
        ImageState::Missing => (Tone::Quiet, Shape::Ring),
    };
    let origin = plain(&image.origin);
    let name = origin.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    Row {
        tone: design::tone(tone),
        shape: design::shape(shape),
        line: image.line(),
        name: if name.is_empty() { plain(image.short_name()) } else { name.to_owned() },
        size: if image.size > 0 { bytes(image.size) } else { String::new() },
        stays: image.stays(),
        used: image.last_used.map(|at| view.ago(at)).unwrap_or_default(),
        origin,
    }
}
