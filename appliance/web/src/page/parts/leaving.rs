//! How the box is restarted, switched off and erased.

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

/// The form, for the owner of a session whose forms carry `csrf`. What it does is said before it is
/// done, and it wants the box's name.
pub fn leave(view: &StatusView, csrf: &str) -> String {
    let erased = Erased::of(view);
    let choice = |leaving: Leaving| (leaving.word(), leaving.label(), leaving.effect(&erased));
    let choices = Leaving::ALL.map(choice).into();
    rendered(&Leave { csrf, name: &view.name, choices })
}
