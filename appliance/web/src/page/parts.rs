//! What stands in each part of a page.

use askama::Template;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use status::view::machine::STATES;
use status::view::moment::{bytes, uptime};
use status::view::problem::Urgency;
use status::view::{Machine, Nic, StatusView};
use status::words::{Shape, Tone};

use super::{Part, headline, look, part, problems, rendered};

/// What a path segment may not have as it is.
const SEGMENT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Machines "in progress" that a page shows.
const TASKS_MAX: usize = 50;
/// Events that a page shows.
const EVENTS_MAX: usize = 10;
/// The folder of machines.
const MACHINES: &str = "/machines/";

#[derive(Template)]
#[template(path = "now.html")]
struct Needs {
    problems: Vec<Card>,
}

struct Card {
    class: &'static str,
    title: String,
    sentence: String,
    since: Option<String>,
    link: Option<String>,
}

#[derive(Template)]
#[template(path = "progress.html")]
struct Progress {
    tasks: Vec<Row>,
}

#[derive(Template)]
#[template(path = "rack.html")]
struct Rack {
    cells: Vec<Row>,
    port: Option<String>,
}

#[derive(Template)]
#[template(path = "machines.html")]
struct Machines {
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "help.html")]
struct Help {
    words: Vec<Row>,
}

/// A machine, wherever it is shown.
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
    sentence: &'a str,
    warning: bool,
}

#[derive(Template)]
#[template(path = "facts.html")]
struct Facts<'a> {
    title: &'a str,
    facts: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = "<span class=\"badge {{ tone }}\"><svg class=\"shape\" viewBox=\"0 0 16 16\" \
              aria-hidden=\"true\">{{ shape|safe }}</svg>{{ text }}</span>"
)]
struct Badge<'a> {
    text: &'a str,
    tone: &'static str,
    shape: &'static str,
}

#[derive(Template)]
#[template(ext = "html", source = "{{ text }}")]
struct Escaped<'a> {
    text: &'a str,
}

/// Text in a page.
pub fn escaped(text: &str) -> String {
    rendered(&Escaped { text })
}

/// A word with its shape on its tint.
pub fn badge(text: &str, tone: Tone, shape: Shape) -> String {
    rendered(&Badge { text, tone: look::tone(tone), shape: look::shape(shape) })
}

/// The path of a machine's page.
pub fn link(name: &str) -> String {
    format!("{MACHINES}{}", utf8_percent_encode(name, &SEGMENT))
}

/// The machine whose page is at `path`.
pub fn unlink(path: &str) -> Option<String> {
    let name = path.strip_prefix(MACHINES)?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    (!name.is_empty() && !name.contains('/')).then(|| name.into_owned())
}

pub fn now(view: &StatusView) -> Vec<Part> {
    let cards: Vec<Card> = problems(view).into_iter().map(|it| card(view, &it)).collect();
    let title = if cards.is_empty() { "" } else { "Needs you" };
    let sentence = headline(view).sentence();
    let tasks = view.machines.iter().filter(|it| it.under_way()).take(TASKS_MAX);
    let tasks = tasks.map(|it| row(view, it)).collect();
    let cells = view.machines.iter().map(|it| row(view, it)).collect();
    let port = view.nics.iter().find(|nic| nic.armed()).map(|nic| nic.name.to_string());
    vec![
        part("headline", "", format!("<h1>{}</h1>", escaped(&sentence))),
        part("needs", title, rendered(&Needs { problems: cards })),
        part("progress", "In progress", rendered(&Progress { tasks })),
        part("rack", "Rack", rendered(&Rack { cells, port })),
        part("events", "Lately", events(view)),
        part("line", "This box", line(view)),
    ]
}

fn card(view: &StatusView, problem: &status::view::Problem) -> Card {
    Card {
        class: if problem.urgency == Urgency::Notice { "wait" } else { "bad" },
        title: problem.title.to_string(),
        sentence: problem.trouble.sentence(),
        since: problem.since.map(|at| view.since(at)),
        link: problem.machine.as_ref().map(|name| link(name)),
    }
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
        tone: look::tone(machine.tone()),
        shape: look::shape(machine.state.shape()),
        status: machine.status(),
        percent: machine.percent.map(|percent| percent.min(100)),
        detail: detail.join(" · "),
        mac: machine.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        ip: machine.ip.to_string(),
        workflow: machine.workflow.to_string(),
        power: machine.power.word(),
    }
}

fn events(view: &StatusView) -> String {
    let lines = view.events.iter().take(EVENTS_MAX).map(|it| Line {
        at: it.at,
        time: view.time_of_day(it.at),
        subject: &it.subject,
        sentence: &it.sentence,
        warning: it.warning,
    });
    rendered(&Events { lines: lines.collect(), none: "Nothing has happened yet." })
}

fn line(view: &StatusView) -> String {
    let mut facts = Vec::new();
    facts.extend(view.address().map(|(nic, at)| ("Address", format!("{at} on {}", nic.name))));
    let slot = if view.slot.is_empty() { "" } else { ", slot " };
    facts.push(("Version", format!("{}{slot}{}", view.version, view.slot)));
    facts.push(("Time", clock(view)));
    facts.push(("Up", uptime(view.uptime_seconds)));
    if view.images.capacity > 0 {
        let (used, all) = (bytes(view.images.used), bytes(view.images.capacity));
        facts.push(("Cache", format!("{used} of {all}")));
    }
    facts.extend(view.system.backup_at.map(|at| ("Backup", view.ago(at))));
    rendered(&Facts { title: "", facts })
}

fn clock(view: &StatusView) -> String {
    let time = view.time_of_day(view.now);
    format!("{time}, clock {}", view.clock.state.word())
}

pub fn machines(view: &StatusView) -> String {
    rendered(&Machines { rows: view.machines.iter().map(|it| row(view, it)).collect() })
}

pub fn machine(view: &StatusView, name: &str) -> Vec<Part> {
    let Some(machine) = view.machines.iter().find(|it| it.name.as_str() == name) else {
        let text = format!("Nothing called ‘{}’.", escaped(name));
        return vec![part("machine", "", format!("<p>{text}</p>"))];
    };
    let word = badge(&machine.status(), machine.tone(), machine.state.shape());
    let row = row(view, machine);
    let mut facts = vec![("MAC", row.mac), ("IP", row.ip), ("Power", row.power.to_owned())];
    facts.push(("Workflow", row.workflow));
    facts.push(("Now", row.detail));
    facts.retain(|(_, value)| !value.is_empty());
    let trouble = machine.trouble.as_ref().map(|it| {
        format!("<article class=\"card bad\"><p>{}</p></article>", escaped(&it.sentence()))
    });
    let head = format!(
        "<p>{word}</p>{}{}",
        trouble.unwrap_or_default(),
        rendered(&Facts { title: "", facts })
    );
    let lines = machine.story.iter().map(|it| Line {
        at: it.at,
        time: view.time_of_day(it.at),
        subject: "",
        sentence: &it.text,
        warning: it.warning,
    });
    let none = "Nothing has happened to it yet.";
    let story = rendered(&Events { lines: lines.collect(), none });
    vec![part("machine", "", head), part("story", "Story", story)]
}

pub fn network(view: &StatusView) -> String {
    let cards: String = view.nics.iter().map(|nic| nic_card(view, nic)).collect();
    let none = "<p class=\"card\">This box sees no network interface.</p>".to_owned();
    if cards.is_empty() { none } else { format!("<div class=\"grid\">{cards}</div>") }
}

fn nic_card(view: &StatusView, nic: &Nic) -> String {
    let serves = match nic.armed_since {
        _ if !nic.held.is_empty() => nic.held.to_string(),
        _ if !nic.provisions() => "nothing is answered here".to_owned(),
        Some(since) if nic.armed() => format!("{}, for {}", nic.mode, view.since(since)),
        _ => nic.mode.to_string(),
    };
    let mut facts = vec![
        ("Role", nic.role.word().to_owned()),
        ("Address", if nic.address.is_empty() { "none".into() } else { nic.address.to_string() }),
        ("Link", nic.link()),
        ("DHCP", serves),
    ];
    facts.extend(nic.mac.map(|mac| ("MAC", mac.to_string())));
    facts.extend(nic.probed.map(|at| ("Last probe", view.ago(at))));
    for foreign in &nic.foreign {
        facts.push(("Other server", format!("{} ({})", foreign.address, foreign.mac)));
    }
    rendered(&Facts { title: &nic.name, facts })
}

pub fn the_box(view: &StatusView) -> String {
    let system = &view.system;
    let mut facts = vec![("Version", view.version.to_string())];
    for slot in &system.slots {
        let how = if slot.running { "running" } else { "not running" };
        facts.push(("Slot", format!("{} {} {how}", slot.name, slot.version)));
    }
    facts.push(("Time", clock(view)));
    facts.push(("Up", uptime(view.uptime_seconds)));
    if system.ram_total > 0 {
        let (used, all) = (bytes(system.ram_used), bytes(system.ram_total));
        facts.push(("Memory", format!("{used} of {all}")));
    }
    if system.disk_total > 0 {
        let (used, all) = (bytes(system.disk_used), bytes(system.disk_total));
        facts.push(("Disk", format!("{used} of {all}")));
    }
    facts.extend(
        view.update
            .as_ref()
            .map(|update| ("Update", format!("{} {}", update.version, update.state.words()))),
    );
    let mut trust = vec![("Pin", view.pin.to_string())];
    trust.push(("SHA-256", system.certificate_sha256.to_string()));
    trust.retain(|(_, value)| !value.is_empty());
    let about = rendered(&Facts { title: "System", facts });
    let trust = rendered(&Facts { title: "Certificate", facts: trust });
    format!(
        "{about}{trust}<p><a class=\"button\" href=\"/kubeconfig\">Download the kubeconfig</a> \
         <a href=\"/ca.pem\">ca.pem</a></p>"
    )
}

pub fn help() -> String {
    let words = STATES.into_iter().map(|state| Row {
        name: state.word().text.to_owned(),
        tone: look::tone(state.word().tone),
        shape: look::shape(state.shape()),
        ..Row::default()
    });
    rendered(&Help { words: words.collect() })
}
