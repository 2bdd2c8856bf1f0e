//! Pages about users: the list, one user, the logged-in user, and the audit log.

use askama::Template;
use box_owner::users::{ROLES, Role, User};
use jiff::SignedDuration;
use percent_encoding::utf8_percent_encode;
use status::log::AuditLine;
use status::view::StatusView;

use crate::html::{SEGMENT, rendered};
use crate::rights::Visitor;
use crate::shell::with_rail;

/// Entry of the navigation under which these pages are.
const HERE: &str = "/box";
/// Age from which a record has its age in place of the time of day.
const TIME_OF_DAY: SignedDuration = SignedDuration::from_hours(12);
/// Path of the list of users.
const USERS: &str = "/users";

/// Returns the path of the page of a user.
pub fn user_link(name: &str) -> String {
    format!("{USERS}/{}", utf8_percent_encode(name, &SEGMENT))
}

#[derive(Template)]
#[template(path = "users.html")]
struct List<'a> {
    csrf: &'a str,
    rows: Vec<(String, &'a User)>,
    roles: [Role; 3],
    form: &'a NewUser,
    error: &'a str,
}

/// Typed fields of the form for a new user, without the passphrase.
#[derive(Debug, Default)]
pub struct NewUser {
    /// Typed name, as the form sent it.
    pub name: String,
    /// Chosen role; `None` for none.
    pub role: Option<Role>,
}

impl NewUser {
    fn is_of(&self, role: &Role) -> bool {
        self.role == Some(*role)
    }
}

/// Renders the list of users and the form for a new one. `error` is the reason why the last request
/// was refused; it may be empty.
pub fn list(
    view: &StatusView,
    who: &Visitor,
    users: &[User],
    (form, error): (&NewUser, &str),
) -> String {
    let link = |user: &User| if user.is_owner() { String::new() } else { user_link(&user.name) };
    let rows = users.iter().map(|user| (link(user), user)).collect();
    let body = rendered(&List { csrf: &who.csrf, rows, roles: ROLES, form, error });
    with_rail(view, who, ("Users", HERE), &body)
}

#[derive(Template)]
#[template(path = "user.html")]
struct One<'a> {
    csrf: &'a str,
    link: String,
    user: &'a User,
    roles: [Role; 3],
    error: &'a str,
}

/// Renders the page of a user besides the owner.
pub fn one(view: &StatusView, who: &Visitor, user: &User, error: &str) -> String {
    let (csrf, link) = (who.csrf.as_str(), user_link(&user.name));
    let body = rendered(&One { csrf, link, user, roles: ROLES, error });
    with_rail(view, who, (&user.name, HERE), &body)
}

#[derive(Template)]
#[template(path = "account.html")]
struct Account<'a> {
    who: &'a Visitor,
    keys: String,
}

/// Renders the page of the logged-in user.
pub fn account(view: &StatusView, who: &Visitor) -> String {
    let body = rendered(&Account { who, keys: who.user.ssh_keys.join("\n") });
    with_rail(view, who, (&who.user.name, ""), &body)
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit<'a> {
    lines: &'a [AuditLine],
    text: &'a str,
    times: Vec<String>,
}

/// Renders the audit log, newest first. `text` is the typed filter.
pub fn audit(view: &StatusView, who: &Visitor, lines: &[AuditLine], text: &str) -> String {
    let time = |at| match view.now.duration_since(at) {
        age if age < TIME_OF_DAY => view.time_of_day(at),
        _ => view.ago(at),
    };
    let times = lines.iter().map(|it| time(it.at)).collect();
    with_rail(view, who, ("Audit log", HERE), &rendered(&Audit { lines, text, times }))
}
