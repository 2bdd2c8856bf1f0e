//! Elements of pages: parts, escaped text, badges, and the paths of pages.

use askama::Template;
use machine_actions::FieldError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use status::words::{Shape, Tone};

use crate::design;

/// Characters that are percent-encoded in a path segment.
pub const SEGMENT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Path prefix of the page of a machine.
pub const MACHINES: &str = "/machines/";
/// Path prefix of the page of a workflow.
const WORKFLOWS: &str = "/workflows/";
/// Path prefix of the page of a Template.
const TEMPLATES: &str = "/templates/";

/// Part of a page that the live stream can replace.
pub struct Part {
    /// Id of the HTML element.
    pub id: &'static str,
    /// Heading above the part; may be empty.
    pub heading: &'static str,
    /// Content of the element.
    pub html: String,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = "<span class=\"badge {{ tone }}\"><svg class=\"shape\" viewBox=\"0 0 16 16\" \
              aria-hidden=\"true\">{{ shape|safe }}</svg>{{ text }}</span>"
)]
struct Badge<'a> {
    text: &'a str,
    tone: &'static str,
    shape: &'static str,
}

#[derive(Template)]
#[template(ext = "html", source = "{{ text }}")]
struct Escaped<'a> {
    text: &'a str,
}

/// Creates a part of a page.
pub fn part(id: &'static str, heading: &'static str, html: String) -> Part {
    Part { id, heading, html }
}

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    rendered(&Escaped { text })
}

/// Renders a word with its shape, in the color of its tone.
pub fn badge(text: &str, tone: Tone, shape: Shape) -> String {
    rendered(&Badge { text, tone: design::tone(tone), shape: design::shape(shape) })
}

/// Returns the path of the page of the machine `name`.
pub fn link(name: &str) -> String {
    format!("{MACHINES}{}", utf8_percent_encode(name, &SEGMENT))
}

/// Returns the path of the page of the workflow `name`.
pub fn workflow_link(name: &str) -> String {
    format!("{WORKFLOWS}{}", utf8_percent_encode(name, &SEGMENT))
}

/// Returns the path of the page of the Template `name`.
pub fn template_link(name: &str) -> String {
    format!("{TEMPLATES}{}", utf8_percent_encode(name, &SEGMENT))
}

/// Returns the name of the workflow whose page is at `path`; `None` for another page.
pub fn unlink_workflow(path: &str) -> Option<String> {
    last_segment(path.strip_prefix(WORKFLOWS)?)
}

/// Decodes the last segment of a path; `None` if more segments follow.
pub fn last_segment(text: &str) -> Option<String> {
    let name = percent_decode_str(text).decode_utf8().ok()?;
    (!name.is_empty() && !name.contains('/')).then(|| name.into_owned())
}

/// Returns the mistakes of a field as a paragraph; empty without mistakes.
pub fn mistakes_of(field: &str, mistakes: &[FieldError]) -> String {
    let of_field = mistakes.iter().filter(|it| it.field == field);
    let texts: Vec<&str> = of_field.map(|it| it.why.as_str()).collect();
    if texts.is_empty() {
        return String::new();
    }
    format!("<p class=\"error\" role=\"alert\">{}</p>\n", escaped(&texts.join(" ")))
}

/// Renders a template. Writing to a `String` cannot fail.
pub fn rendered(template: &impl Template) -> String {
    template.render().unwrap_or_default()
}
