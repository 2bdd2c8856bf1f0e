//! Pages without a session: claim and login.

use askama::Template;
use status::view::StatusView;

use crate::html::rendered;
use crate::shell::alone;

#[derive(Template)]
#[template(path = "claim.html")]
struct Claim<'a> {
    /// True if a screen shows pin and code; false for a process, whose log has the pin.
    has_screen: bool,
    pin: &'a str,
    code: &'a str,
    error: &'a str,
    host: &'a str,
}

#[derive(Template)]
#[template(path = "login.html")]
struct Login<'a> {
    pin: &'a str,
    name: &'a str,
    error: &'a str,
}

/// Renders the page to claim the box. `code` fills the input of the code; it may be empty.
pub fn claim(
    view: &StatusView,
    has_screen: bool,
    (code, host): (&str, &str),
    error: &str,
) -> String {
    let body = rendered(&Claim { has_screen, pin: &view.pin, code, error, host });
    alone("Claim", view, &body)
}

/// Renders the login page. `name` is the typed user name; it may be empty.
pub fn login(view: &StatusView, name: &str, error: &str) -> String {
    alone("Log in", view, &rendered(&Login { pin: &view.pin, name, error }))
}
