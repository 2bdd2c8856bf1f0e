//! Settings of the box as a text, with their history.

use askama::Template;
use status::settings::{Revision, SettingsReport};
use status::view::StatusView;

use crate::html::rendered;
use crate::rights::Visitor;
use crate::shell::with_rail;

/// Title and path of the entry in the navigation.
const HERE: (&str, &str) = ("Settings", "/box");
/// Maximum number of revisions on the page, newest first.
const REVISIONS_MAX: usize = 30;
/// Least and greatest number of lines of the text field.
const LINES: (usize, usize) = (12, 40);

/// Content of the page with the settings, before and after a change.
pub struct SettingsPage<'a> {
    /// Stored text of the settings, without secrets.
    pub report: &'a SettingsReport,
    /// Stored revisions, the newest first.
    pub history: &'a [Revision],
    /// Text in the form, as it was typed or as it is stored.
    pub text: &'a str,
    /// Note in the form.
    pub note: &'a str,
    /// Mistakes of the text that was sent, each with its line.
    pub mistakes: &'a [String],
    /// Other reason why the last request was refused; may be empty.
    pub error: &'a str,
    /// True after a change was stored.
    pub saved: bool,
}

struct Row<'a> {
    revision: &'a Revision,
    time: String,
}

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings<'a> {
    csrf: &'a str,
    lines: usize,
    rows: Vec<Row<'a>>,
    restart: String,
    page: &'a SettingsPage<'a>,
}

/// Renders the page with the settings.
pub fn settings<'a>(view: &StatusView, who: &'a Visitor, page: &'a SettingsPage<'a>) -> String {
    let time = |it: &Revision| it.at.map(|at| view.ago(at)).unwrap_or_default();
    let row = |revision: &'a Revision| Row { revision, time: time(revision) };
    let body = rendered(&Settings {
        csrf: &who.csrf,
        lines: page.text.lines().count().clamp(LINES.0, LINES.1),
        rows: page.history.iter().take(REVISIONS_MAX).map(row).collect(),
        restart: page.report.restart.join(", "),
        page,
    });
    with_rail(view, who, HERE, &body)
}

/// Content of the page of one revision.
pub struct RevisionPage<'a> {
    /// Number of the revision.
    pub number: u32,
    /// Checksum of the current text.
    pub based: &'a str,
    /// Difference from the revision to the current text; empty if both are equal.
    pub diff: &'a str,
}

#[derive(Template)]
#[template(path = "settings-revision.html")]
struct OneRevision<'a> {
    csrf: &'a str,
    page: &'a RevisionPage<'a>,
}

/// Renders the page of one revision.
pub fn revision(view: &StatusView, who: &Visitor, page: &RevisionPage<'_>) -> String {
    with_rail(view, who, HERE, &rendered(&OneRevision { csrf: &who.csrf, page }))
}
