//! Pages of the settings with example content.

use status::settings::{Revision, SettingsReport};
use status::view::example;

use super::owner;
use crate::setup::settings::{RevisionPage, SettingsPage, revision, settings};

pub fn page(mistakes: &[String]) -> String {
    let view = example::working();
    let stored = |number: u32, current| Revision {
        number,
        at: (number > 1).then_some(view.now),
        actor: "jane".to_owned(),
        note: "the <second> pool".to_owned(),
        current,
        ..Revision::default()
    };
    let history = [stored(3, true), stored(2, false), stored(1, false)];
    let text = "name = \"<box>\"\n".to_owned();
    let report =
        SettingsReport { text, restart: vec!["name".to_owned()], ..SettingsReport::default() };
    let page = SettingsPage {
        report: &report,
        history: &history,
        text: &report.text,
        note: "",
        mistakes,
        error: "",
        saved: mistakes.is_empty(),
    };
    settings(&view, &owner(), &page)
}

pub fn revision_page() -> String {
    let page = RevisionPage { number: 2, based: "ab12", diff: "-name = \"<a>\"\n+name = \"b\"\n" };
    revision(&example::working(), &owner(), &page)
}
