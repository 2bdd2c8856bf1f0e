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
use crate::rights::{Permission, Visitor};

#[derive(Template)]
#[template(path = "images.html")]
struct Images<'a> {
    csrf: &'a str,
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
    /// Digest or URL by which a request names the image.
    key: String,
    /// Path and label of each operation on the image.
    actions: Vec<(&'static str, &'static str)>,
}

/// Renders the free space of the cache and the list of files.
pub fn images(view: &StatusView, who: &Visitor) -> String {
    let images = &view.images;
    if images.capacity == 0 {
        let none = "This box has no image cache: its configuration has no <code>[images]</code>. \
            Machines fetch images by themselves.";
        return format!("<p class=\"card\">{none}</p>");
    }
    let full = percent(images.used, images.capacity);
    let mut html = format!(
        "<div class=\"card\">{}<p>{} used.</p></div>",
        bar(full, "Partition of the cache"),
        share(images.used, images.capacity)
    );
    if !images.warning.is_empty() {
        let warning = escaped(&plain(&images.warning));
        html.push_str(&format!("<p class=\"card wait\">{warning}</p>"));
    }
    html.push_str(&rendered(&Images {
        csrf: &who.csrf,
        rows: images.items.iter().map(|it| row(view, it, who)).collect(),
    }));
    html
}

fn row(view: &StatusView, image: &Image, who: &Visitor) -> Row {
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
        key: if image.digest.is_empty() { image.origin.clone() } else { image.digest.clone() },
        actions: if who.may(Permission::ChangeImages) { actions(image) } else { Vec::new() },
        origin,
    }
}

/// Returns the operations that the state of an image permits.
fn actions(image: &Image) -> Vec<(&'static str, &'static str)> {
    let mut actions = vec![if image.pinned { ("unpin", "Unpin") } else { ("pin", "Pin") }];
    let stays = image.pinned || image.in_use || image.needed;
    if image.state == ImageState::Ready && !stays {
        actions.push(("remove", "Remove"));
    }
    actions
}
