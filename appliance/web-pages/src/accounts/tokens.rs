//! Page of the access tokens of the API.

use askama::Template;
use box_owner::users::{ROLES, Role};
use jiff::SignedDuration;
use status::access::AccessToken;
use status::view::StatusView;

use crate::html::rendered;
use crate::rights::Visitor;
use crate::shell::with_rail;

/// Choices for the number of days of a new token.
const DAYS: [u32; 4] = [7, 30, 90, 365];
/// Remaining time from which a token is marked.
const SOON: SignedDuration = SignedDuration::from_hours(24 * 14);

/// Typed fields of the form for a new token.
#[derive(Debug)]
pub struct NewToken {
    /// Typed name, as the form sent it.
    pub name: String,
    /// Name of the chosen role.
    pub role: String,
    /// Chosen number of days.
    pub days: u32,
}

impl Default for NewToken {
    fn default() -> Self {
        Self { name: String::new(), role: Role::Viewer.word().to_owned(), days: DAYS[2] }
    }
}

#[derive(Template)]
#[template(path = "tokens.html")]
struct List<'a> {
    csrf: &'a str,
    rows: Vec<Row<'a>>,
    roles: [Role; 3],
    days: [u32; 4],
    form: &'a NewToken,
    error: &'a str,
}

struct Row<'a> {
    token: &'a AccessToken,
    role: String,
    ends: String,
    /// True for a token that has ended or ends soon.
    late: bool,
    used: String,
}

/// Renders the list of tokens and the form for a new one. `error` is the reason why the last
/// request was refused; it may be empty.
pub fn list(
    view: &StatusView,
    who: &Visitor,
    tokens: &[AccessToken],
    (form, error): (&NewToken, &str),
) -> String {
    let rows = tokens.iter().map(|token| row(view, token)).collect();
    let body = rendered(&List { csrf: &who.csrf, rows, roles: ROLES, days: DAYS, form, error });
    with_rail(view, who, ("Tokens", "/box"), &body)
}

fn row<'a>(view: &StatusView, token: &'a AccessToken) -> Row<'a> {
    let left = token.until.map(|until| until.duration_since(view.now));
    Row {
        token,
        role: token.role(),
        ends: match (token.until, left) {
            (Some(_), Some(left)) if !left.is_positive() => "has ended".to_owned(),
            (Some(until), _) => until.strftime("%Y-%m-%d").to_string(),
            _ => "never".to_owned(),
        },
        late: left.is_some_and(|left| left <= SOON),
        used: token.used.map_or_else(|| "not since the start".to_owned(), |at| view.ago(at)),
    }
}
