//! Contents of the parts of a page.

pub mod box_forms;
mod cluster_api;
mod images;
mod leaving;
mod machines;
mod network;
mod now;
pub mod os_images;
mod system;
mod workflow;
mod workflows;

use askama::Template;
use jiff::Timestamp;
use status::log::LogLine;
use status::plain;
use status::view::machine::STATES;
use status::view::moment::bytes;
use status::view::{Event, Machine, StatusView};

use crate::design;
use crate::html::{Part, badge, escaped, link, part, rendered, workflow_link};
use crate::rights::{Permission, Visitor};

pub use cluster_api::{cluster_api, connect};
pub use images::images;
pub use leaving::leave;
pub use machines::{ignored, machine, machines};
pub use network::network;
pub use now::now;
pub use system::the_box;
pub use workflow::workflow;
pub use workflows::workflows;

#[derive(Template)]
#[template(path = "help.html")]
struct Help {
    words: Vec<Row>,
}

/// Machine in a table, as formatted text.
#[derive(Default)]
struct Row {
    name: String,
    link: String,
    tone: &'static str,
    shape: &'static str,
    status: String,
    percent: Option<u8>,
    detail: String,
    mac: String,
    ip: String,
    workflow: String,
    power: &'static str,
    seen: String,
}

#[derive(Template)]
#[template(path = "events.html")]
struct Events<'a> {
    lines: Vec<Line<'a>>,
    none: &'a str,
}

struct Line<'a> {
    at: Timestamp,
    time: String,
    subject: &'a str,
    sentence: String,
    warning: bool,
}

#[derive(Template)]
#[template(path = "facts.html")]
struct Facts<'a> {
    title: &'a str,
    facts: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "one-click.html")]
struct OneClick<'a> {
    csrf: &'a str,
    path: &'a str,
    label: &'static str,
    class: &'static str,
    /// Name and value of a hidden field; an empty name for none.
    field: (&'static str, &'a str),
}

/// Renders the button that lets stopped networks serve again; empty for a visitor who may not.
pub fn serve_again(who: &Visitor) -> String {
    if !who.may(Permission::ServeAgain) {
        return String::new();
    }
    let (path, label) = ("/network/serve-again", "Serve again");
    rendered(&OneClick { csrf: &who.csrf, path, label, class: "small", field: ("", "") })
}

/// Renders the button that dismisses the notice with this key; empty for a visitor who may not.
fn dismiss(key: &str, who: &Visitor) -> String {
    if !who.may(Permission::DismissNotices) {
        return String::new();
    }
    rendered(&OneClick {
        csrf: &who.csrf,
        path: "/notices/dismiss",
        label: "Dismiss for a week",
        class: "plain",
        field: ("key", key),
    })
}

/// Renders the button that lets the box blink; empty for a visitor who may not.
pub fn identify(who: &Visitor) -> String {
    if !who.may(Permission::Identify) {
        return String::new();
    }
    rendered(&OneClick {
        csrf: &who.csrf,
        path: "/box/identify",
        label: "Identify",
        class: "plain",
        field: ("", ""),
    })
}

fn row(view: &StatusView, machine: &Machine) -> Row {
    let mut detail = Vec::new();
    detail.extend((!machine.step.is_empty()).then(|| machine.step.to_string()));
    if machine.bytes_total > 0 {
        let (done, all) = (bytes(machine.bytes_done), bytes(machine.bytes_total));
        detail.push(format!("{done} of {all}"));
    }
    detail.extend(machine.bytes_per_second.map(|rate| format!("{}/s", bytes(rate))));
    let left = machine.millis_left.map(|millis| millis.div_ceil(1000));
    detail.extend(left.map(|left| format!("{} left", status::view::moment::rough(left))));
    detail.extend(machine.since.map(|at| format!("for {}", view.since(at))));
    Row {
        name: machine.name.to_string(),
        link: link(&machine.name),
        tone: design::tone(machine.tone()),
        shape: design::shape(machine.state.shape()),
        status: machine.status(),
        percent: machine.percent.map(|percent| percent.min(100)),
        detail: detail.join(" · "),
        mac: machine.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        ip: machine.ip.to_string(),
        workflow: machine.workflow.to_string(),
        power: machine.power.word(),
        seen: machine.last_seen.map(|at| view.ago(at)).unwrap_or_default(),
    }
}

/// Formats events for the page, in the given order.
fn happenings<'a>(view: &StatusView, events: impl Iterator<Item = &'a Event>) -> Vec<Line<'a>> {
    let line = |it: &'a Event| Line {
        at: it.at,
        time: view.time_of_day(it.at),
        subject: &it.subject,
        sentence: it.sentence.to_string(),
        warning: it.warning,
    };
    events.map(line).collect()
}

/// Renders log lines, newest first. `lines` begins with the oldest.
fn log_lines(view: &StatusView, lines: &[LogLine]) -> String {
    let newest = lines.iter().rev().map(|it| Line {
        at: it.received,
        time: view.time_of_day(it.received),
        subject: &it.program,
        sentence: plain(&it.text),
        warning: it.warning(),
    });
    rendered(&Events { lines: newest.collect(), none: "No messages yet." })
}

fn clock(view: &StatusView) -> String {
    let time = view.time_of_day(view.now);
    let source = match view.clock.source.as_str() {
        "" => String::new(),
        source => format!(" by {source}"),
    };
    let zone = match view.clock.zone.as_str() {
        "" => String::new(),
        zone => format!(" {zone}"),
    };
    format!("{time}{zone}, clock {}{source}", view.clock.state.word())
}

/// Formats two sizes: `12M of 4G`.
fn share(used: u64, total: u64) -> String {
    format!("{} of {}", bytes(used), bytes(total))
}

pub fn help() -> String {
    let words = STATES.into_iter().map(|state| Row {
        name: state.word().text.to_owned(),
        tone: design::tone(state.word().tone),
        shape: design::shape(state.shape()),
        ..Row::default()
    });
    rendered(&Help { words: words.collect() })
}
