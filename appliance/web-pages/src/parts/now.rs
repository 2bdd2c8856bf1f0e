//! Overview: health of the box and work in progress.

use askama::Template;
use jiff::SignedDuration;
use machine_actions::Action;
use status::view::moment::uptime;
use status::view::problem::{Remedy, Urgency};
use status::view::{MachineState, Problem, StatusView, headline, problems};

use super::{
    Events, Facts, Part, Row, clock, dismiss, escaped, happenings, link, part, rendered, row,
    serve_again, share,
};
use crate::machine::forms::{buttons, remedies};
use crate::machine::several::PATH;
use crate::rights::{Permission, Visitor};

/// Maximum number of machines in the list "in progress".
const TASKS_MAX: usize = 50;
/// Maximum number of new machines on the page.
const NEW_MAX: usize = 20;
/// Maximum number of events on the page.
const EVENTS_MAX: usize = 10;

/// Age up to which a request for an address counts on an empty page: the time of some boots.
const RECENT: SignedDuration = SignedDuration::from_mins(5);

#[derive(Template)]
#[template(path = "now.html")]
struct Needs {
    problems: Vec<Card>,
}

struct Card {
    class: &'static str,
    title: String,
    sentence: String,
    causes: Vec<String>,
    since: Option<String>,
    link: Option<String>,
    /// Buttons as HTML; may be empty.
    actions: String,
}

#[derive(Template)]
#[template(path = "new.html")]
struct NewMachines {
    new: Vec<NewMachine>,
    /// Path of the form for several machines; empty for a visitor who may not install.
    several: &'static str,
}

struct NewMachine {
    row: Row,
    /// Buttons of the machine as HTML, from its actions.
    actions: String,
}

#[derive(Template)]
#[template(path = "progress.html")]
struct Progress {
    tasks: Vec<Row>,
}

#[derive(Template)]
#[template(path = "rack.html")]
struct PortPicture {
    cells: Vec<Row>,
    port: Option<String>,
    /// Number of machines that requested an address in the last minutes.
    requests: usize,
}

pub fn now(view: &StatusView, who: &Visitor) -> Vec<Part> {
    let cards: Vec<Card> = problems(view).into_iter().map(|it| card(view, &it, who)).collect();
    let sentence = headline(view).sentence();
    let tasks = view.machines.iter().filter(|it| it.under_way()).take(TASKS_MAX);
    let tasks = tasks.map(|it| row(view, it)).collect();
    // New machines have a part of their own.
    let known = view.machines.iter().filter(|it| it.state != MachineState::New);
    let cells = known.map(|it| row(view, it)).collect();
    let port = view.nics.iter().find(|nic| nic.armed()).map(|nic| nic.name.to_string());
    vec![
        part("headline", "", format!("<h1>{}</h1>", escaped(&sentence))),
        part("needs", "", rendered(&Needs { problems: cards })),
        part("new", "", new_machines(view, who)),
        part("progress", "In progress", rendered(&Progress { tasks })),
        part("rack", "Rack", rendered(&PortPicture { cells, port, requests: requests(view) })),
        part("events", "Lately", events(view)),
        part("line", "This box", line(view)),
    ]
}

fn card(view: &StatusView, problem: &Problem, who: &Visitor) -> Card {
    let name = problem.machine.as_ref();
    let machine = name.and_then(|name| view.machines.iter().find(|it| it.name == *name));
    Card {
        class: if problem.urgency == Urgency::Notice { "wait" } else { "bad" },
        title: problem.title.to_string(),
        sentence: problem.trouble.without_causes().sentence(),
        causes: problem.trouble.causes.iter().map(ToString::to_string).collect(),
        since: problem.since.map(|at| view.since(at)),
        link: name.map(|name| link(name)),
        actions: match (machine, problem.remedy) {
            (Some(machine), _) => remedies(machine, who),
            (None, Remedy::Rescan) => serve_again(who),
            (None, _) if problem.may_be_dismissed() => dismiss(&problem.key, who),
            (None, _) => String::new(),
        },
    }
}

/// Counts the machines that requested an address within [`RECENT`].
fn requests(view: &StatusView) -> usize {
    view.heard.iter().filter(|it| view.now.duration_since(it.asked) <= RECENT).count()
}

/// Returns the machines that asked for an address and have no Hardware, with their actions.
fn new_machines(view: &StatusView, who: &Visitor) -> String {
    let new = view.machines.iter().filter(|it| it.state == MachineState::New).take(NEW_MAX);
    let new: Vec<NewMachine> =
        new.map(|it| NewMachine { row: row(view, it), actions: buttons(it, who) }).collect();
    let may_install = who.may(Permission::Act(Action::Install));
    let several = if may_install { PATH } else { "" };
    rendered(&NewMachines { new, several })
}

fn events(view: &StatusView) -> String {
    let lines = happenings(view, view.events.iter().take(EVENTS_MAX));
    rendered(&Events { lines, none: "Nothing has happened yet." })
}

fn line(view: &StatusView) -> String {
    let mut facts = Vec::new();
    facts.extend(view.address().map(|(nic, at)| ("Address", format!("{at} on {}", nic.name))));
    let slot = if view.slot.is_empty() { "" } else { ", slot " };
    facts.push(("Version", format!("{}{slot}{}", view.version, view.slot)));
    facts.push(("Time", clock(view)));
    facts.push(("Up", uptime(view.uptime_seconds)));
    if view.system.disk_total > 0 {
        facts.push(("Disk used", share(view.system.disk_used, view.system.disk_total)));
    }
    if view.images.capacity > 0 {
        facts.push(("Partition of the cache", share(view.images.used, view.images.capacity)));
    }
    facts.extend(view.system.backup_at.map(|at| ("Backup", view.ago(at))));
    rendered(&Facts { title: "", facts })
}
