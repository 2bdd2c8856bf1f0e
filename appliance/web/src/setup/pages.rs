//! The screens as HTML.

use askama::Template;
use status::view::{Role, StatusView};

use super::{CARDS_MAX, Card, Times};
use crate::page::{alone, rendered};

/// Roles in the order in which a form lists them, with what each means.
const ROLES: [(Role, &str); 4] = [
    (Role::Management, "people reach the box here"),
    (Role::Provisioning, "a network for machines only"),
    (Role::Both, "people and machines, beside another DHCP server"),
    (Role::Unused, "nobody"),
];
/// The same for what DHCP answers.
const MODES: [(&str, &str); 4] = [
    ("off", "nobody"),
    ("proxy", "known machines, what to boot; another server gives the addresses"),
    ("reserved", "known machines, what to boot and their addresses"),
    ("pool", "everybody, with addresses from a pool"),
];

/// A choice in a list.
struct Choice {
    word: &'static str,
    meaning: &'static str,
    chosen: bool,
}

/// A card in a form.
struct Row<'a> {
    card: &'a Card,
    roles: Vec<Choice>,
    modes: Vec<Choice>,
}

#[derive(Template)]
#[template(path = "setup-network.html")]
struct Cards<'a> {
    rows: Vec<Row<'a>>,
    csrf: &'a str,
    error: &'a str,
}

#[derive(Template)]
#[template(path = "setup-time.html")]
struct When<'a> {
    times: &'a Times,
    zones: &'a [&'static str],
    csrf: &'a str,
    error: &'a str,
}

#[derive(Template)]
#[template(path = "setup-done.html")]
struct Done<'a> {
    ports: String,
    restart: bool,
    csrf: &'a str,
}

fn row(card: &Card) -> Row<'_> {
    let role = |(role, meaning): (Role, &'static str)| Choice {
        word: role.word(),
        meaning,
        chosen: role == card.role,
    };
    let mode = |(word, meaning): (&'static str, &'static str)| Choice {
        word,
        meaning,
        chosen: word == card.mode,
    };
    Row { card, roles: ROLES.map(role).into(), modes: MODES.map(mode).into() }
}

/// What each card is for.
pub fn cards(view: &StatusView, cards: &[Card], csrf: &str, error: &str) -> String {
    let rows = cards.iter().take(CARDS_MAX).map(row).collect();
    alone("Networks", view, &rendered(&Cards { rows, csrf, error }))
}

/// The time zone, and when updates may restart the box.
pub fn times(
    view: &StatusView,
    (times, zones): (&Times, &[&'static str]),
    csrf: &str,
    error: &str,
) -> String {
    alone("Time and updates", view, &rendered(&When { times, zones, csrf, error }))
}

/// What to do next.
pub fn done(view: &StatusView, cards: &[Card], restart: bool, csrf: &str) -> String {
    let serves =
        |card: &&Card| matches!(card.role, Role::Provisioning | Role::Both) && card.mode != "off";
    let ports: Vec<&str> = cards.iter().filter(serves).map(|card| card.name.as_str()).collect();
    let ports = ports.join(" or ");
    alone("Done", view, &rendered(&Done { ports, restart, csrf }))
}
