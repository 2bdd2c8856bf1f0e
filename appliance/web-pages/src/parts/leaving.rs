//! Form to restart, switch off or reset the box.

use askama::Template;
use status::reset::{BoxAction, ErasureSummary};
use status::view::StatusView;

use super::rendered;
use crate::rights::Visitor;

#[derive(Template)]
#[template(path = "leave.html")]
struct Leave<'a> {
    csrf: &'a str,
    name: &'a str,
    choices: Vec<(&'static str, &'static str, String)>,
}

/// Renders the form with the effect of each action. The user must type the box's name. `csrf` is
/// the CSRF token of the session.
pub fn leave(view: &StatusView, who: &Visitor) -> String {
    let erased = ErasureSummary::of(view);
    let choice = |leaving: BoxAction| (leaving.word(), leaving.label(), leaving.effect(&erased));
    let choices = BoxAction::ALL.map(choice).into();
    rendered(&Leave { csrf: &who.csrf, name: &view.name, choices })
}
