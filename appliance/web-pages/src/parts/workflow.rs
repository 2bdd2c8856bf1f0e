//! One workflow with its actions.

use askama::Template;
use status::log::LogLine;
use status::view::work::{WorkAction, WorkDetails};
use status::view::{StatusView, Work};
use status::{plain, words};

use super::{Part, badge, design, escaped, link, log_lines, part, rendered};
use crate::machine::forms::buttons;
use crate::rights::{Permission, Visitor};

#[derive(Template)]
#[template(path = "workflow.html")]
struct Head<'a> {
    badge: String,
    work: &'a Work,
    machine: String,
    trouble: String,
    /// Buttons as HTML; may be empty.
    actions: String,
}

#[derive(Template)]
#[template(path = "workflow-actions.html")]
struct Actions {
    rows: Vec<Row>,
}

struct Row {
    tone: &'static str,
    shape: &'static str,
    word: &'static str,
    name: String,
    started: String,
    took: String,
    message: String,
}

/// Renders a workflow with its actions and the log of its machine.
pub fn workflow(
    view: &StatusView,
    name: &str,
    (details, log): (Option<&WorkDetails>, &[LogLine]),
    who: &Visitor,
) -> Vec<Part> {
    let Some(details) = details else {
        let text = format!("No workflow is called ‘{}’.", escaped(name));
        return vec![part("workflow", "", format!("<p>{text}</p>"))];
    };
    let work = &details.work;
    let (word, tone, shape) = words::work(work.state, work.held, work.canceled, &work.queued);
    // A machine may have a newer workflow, to which its actions belong.
    let machine = view.machines.iter().find(|it| it.name == work.machine);
    let own = machine.filter(|it| it.workflow == work.name);
    let head = Head {
        badge: badge(word, tone, shape),
        work,
        machine: if work.machine.is_empty() { String::new() } else { link(&work.machine) },
        trouble: work.trouble.as_ref().map(|it| it.sentence()).unwrap_or_default(),
        actions: own.map(|machine| buttons(machine, who)).unwrap_or_default(),
    };
    let rows = details.actions.iter().map(|action| row(view, action)).collect();
    let mut parts = vec![
        part("workflow", "", rendered(&head)),
        part("actions", "Actions", rendered(&Actions { rows })),
    ];
    if who.may(Permission::ReadLog) {
        parts.push(part("log", "Log of the machine", log_lines(view, log)));
    }
    parts
}

fn row(view: &StatusView, action: &WorkAction) -> Row {
    let word = words::action(action.state);
    let message = match action.repeats {
        0 => plain(&action.message),
        repeats => format!("repeat {repeats}: {}", plain(&action.message)),
    };
    Row {
        tone: design::tone(word.tone),
        shape: design::shape(words::action_shape(action.state)),
        word: word.text,
        name: plain(&action.name),
        started: action.started.map(|at| view.time_of_day(at)).unwrap_or_default(),
        took: action.millis(view.now).map(stdx::seconds).unwrap_or_default(),
        message,
    }
}
