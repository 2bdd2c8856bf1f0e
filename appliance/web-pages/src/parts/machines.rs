//! List of machines, and the page of one machine.

use askama::Template;
use machine_actions::Action;
use status::log::LogLine;
use status::view::{Machine, StatusView};

use super::{
    Events, Facts, Line, Part, Row, badge, escaped, link, log_lines, part, rendered, row,
    workflow_link,
};
use crate::machine::forms::buttons;
use crate::machine::tabs::{Tab, links};
use crate::rights::{Permission, Visitor};

#[derive(Template)]
#[template(path = "machines.html")]
struct Machines {
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "ignored.html")]
struct Ignored<'a> {
    ignored: Vec<IgnoredMachine>,
    csrf: &'a str,
    /// True if the visitor may show ignored machines again.
    may_show: bool,
}

struct IgnoredMachine {
    mac: String,
    link: String,
}

#[derive(Template)]
#[template(path = "bar.html")]
struct Bar<'a> {
    percent: u8,
    label: &'a str,
}

/// Returns the power state with its reason.
fn power(machine: &Machine) -> String {
    match machine.power_reason.as_str() {
        "" => machine.power.word().to_owned(),
        reason => format!("{}: {reason}", machine.power.word()),
    }
}

/// Renders a progress bar with its value as text.
pub fn bar(percent: u8, label: &str) -> String {
    rendered(&Bar { percent: percent.min(100), label })
}

pub fn machines(view: &StatusView) -> String {
    rendered(&Machines { rows: view.machines.iter().map(|it| row(view, it)).collect() })
}

/// Renders the list of the ignored machines; empty without one.
pub fn ignored(view: &StatusView, who: &Visitor) -> String {
    if view.ignored.is_empty() {
        return String::new();
    }
    let ignored = view.ignored.iter().map(|mac| {
        let mac = mac.to_string();
        IgnoredMachine { link: link(&mac), mac }
    });
    rendered(&Ignored {
        ignored: ignored.collect(),
        csrf: &who.csrf,
        may_show: who.may(Permission::Act(Action::Ignore)),
    })
}

/// Returns the parts of a machine's tab that change.
pub fn machine(
    view: &StatusView,
    (name, tab): (&str, Tab),
    log: &[LogLine],
    who: &Visitor,
) -> Vec<Part> {
    let Some(machine) = view.machines.iter().find(|it| it.name.as_str() == name) else {
        let text = format!("No machine is called ‘{}’.", escaped(name));
        return vec![part("machine", "", format!("<p>{text}</p>"))];
    };
    // The links change with the workflow, the BMC and the Hardware of the machine.
    let mut parts = vec![part("tabs", "", links(machine, tab, who))];
    parts.extend(match tab {
        Tab::History => {
            let lines = machine.story.iter().map(|it| Line {
                at: it.at,
                time: view.time_of_day(it.at),
                subject: "",
                sentence: it.text.to_string(),
                warning: it.warning,
            });
            let none = "This machine has no events yet.";
            let history = rendered(&Events { lines: lines.collect(), none });
            let head = state(view, machine, who);
            vec![part("machine", "", head), part("history", "History", history)]
        }
        Tab::Log => vec![part("log", "", log_lines(view, log))],
        Tab::Hardware | Tab::Bmc | Tab::Console | Tab::Yaml => Vec::new(),
    });
    parts
}

/// Renders state, trouble, actions and facts of a machine.
fn state(view: &StatusView, machine: &Machine, who: &Visitor) -> String {
    let word = badge(&machine.status(), machine.tone(), machine.state.shape());
    let row = row(view, machine);
    let mut facts = vec![
        ("Model", machine.model.to_string()),
        ("MAC", row.mac),
        ("IP", row.ip),
        ("Power", power(machine)),
    ];
    facts.push(("Now", row.detail));
    facts.push(("Last seen", row.seen));
    facts.retain(|(_, value)| !value.is_empty());
    let workflow = match row.workflow.as_str() {
        "" => String::new(),
        name => {
            let (path, name) = (workflow_link(name), escaped(name));
            format!("<p>Workflow <a href=\"{path}\">{name}</a></p>")
        }
    };
    let trouble = machine.trouble.as_ref().map(|it| {
        format!("<article class=\"card bad\"><p>{}</p></article>", escaped(&it.sentence()))
    });
    format!(
        "<p>{word}</p>{}{}{}{}",
        row.percent.map(|percent| bar(percent, &machine.name)).unwrap_or_default(),
        trouble.unwrap_or_default(),
        buttons(machine, who),
        rendered(&Facts { title: "", facts }) + &workflow
    )
}
