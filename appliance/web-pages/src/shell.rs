//! Frame around every page: head, navigation, health of the box, foot.

use askama::Template;
use status::view::problem::safe_mode_trouble;
use status::view::{StatusView, health};

use crate::design;
use crate::html::{badge, escaped, rendered};
use crate::rights::{Permission, Visitor};

/// Navigation entries: path, label, and true for an entry that a phone shows at the bottom.
pub const RAIL: [(&str, &str, bool); 9] = [
    ("/", "Now", false),
    ("/machines", "Machines", false),
    ("/workflows", "Workflows", true),
    ("/templates", "Templates", true),
    ("/network", "Network", false),
    ("/images", "Images", true),
    ("/cluster-api", "Cluster API", true),
    ("/box", "Box", false),
    ("/help", "Help", true),
];

#[derive(Template)]
#[template(path = "shell.html")]
pub struct Shell<'a> {
    pub title: &'a str,
    pub name: &'a str,
    pub version: &'a str,
    pub health: String,
    pub here: &'a str,
    pub rail: &'a [(&'static str, &'static str, bool)],
    pub refresh: bool,
    /// True for a page with the navigation.
    pub nav: bool,
    /// True for a page whose parts the live stream replaces.
    pub live: bool,
    pub who: Option<&'a Visitor>,
    pub themes: &'a [(&'static str, &'static str)],
    /// Warning shown on every page; may be empty.
    pub notice: &'a str,
    pub body: &'a str,
}

/// Renders the response to a request without the permission.
pub fn refused(view: &StatusView, who: &Visitor, permission: Permission) -> String {
    let text = escaped(&who.refusal(permission));
    let body = format!("<h1>Not allowed</h1><p class=\"error\">{text}</p>");
    with_rail(view, who, ("Not allowed", ""), &body)
}

/// Renders a page with a sentence and a link to the overview.
pub fn sentence(view: &StatusView, title: &str, text: &str) -> String {
    let text = escaped(text);
    let body = format!("<h1>{title}</h1><p>{text}</p><p><a href=\"/\">Now</a></p>");
    alone(title, view, &body)
}

/// Renders a page with the navigation and without live parts. `here` is the path of its entry.
pub fn with_rail(
    view: &StatusView,
    who: &Visitor,
    (title, here): (&str, &str),
    body: &str,
) -> String {
    rendered(&Shell {
        title,
        name: &view.name,
        version: &view.version,
        health: health_badge(view),
        here,
        rail: &RAIL,
        refresh: false,
        nav: true,
        live: false,
        who: Some(who),
        themes: &design::THEMES,
        notice: &notice(view),
        body,
    })
}

/// Renders a page without the navigation.
pub fn alone(title: &str, view: &StatusView, body: &str) -> String {
    rendered(&Shell {
        title,
        name: &view.name,
        // The version is shown only within a session.
        version: "",
        health: String::new(),
        here: "",
        rail: &[],
        refresh: false,
        nav: false,
        live: false,
        who: None,
        themes: &[],
        notice: &notice(view),
        body,
    })
}

/// Returns the warning about safe mode, else an empty text. The live stream need not update the
/// warning, because safe mode lasts until a restart.
pub fn notice(view: &StatusView) -> String {
    if view.safe_mode.is_empty() { String::new() } else { safe_mode_trouble(view).sentence() }
}

pub fn health_badge(view: &StatusView) -> String {
    let (word, shape) = health::health(view);
    badge(word.text, word.tone, shape)
}
