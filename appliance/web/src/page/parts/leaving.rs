//! Form to restart, switch off or reset the box.

use askama::Template;
use status::reset::{Erased, Leaving};
use status::view::StatusView;

use super::rendered;

#[derive(Template)]
#[template(path = "leave.html")]
struct Leave<'a> {
    csrf: &'a str,
    name: &'a str,
    choices: Vec<(&'static str, &'static str, String)>,
}

/// The form, with the CSRF token of the session. It names the effect of each choice and requires
/// the box's name.
pub fn leave(view: &StatusView, csrf: &str) -> String {
    let erased = Erased::of(view);
    let choice = |leaving: Leaving| (leaving.word(), leaving.label(), leaving.effect(&erased));
    let choices = Leaving::ALL.map(choice).into();
    rendered(&Leave { csrf, name: &view.name, choices })
}
