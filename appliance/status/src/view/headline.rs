//! Summary sentence at the top of every interface.

use super::problem::{Urgency, problems};
use super::{MachineState, StatusView};

/// Subject of a problem that belongs to no machine.
const THIS_BOX: &str = "this box";

/// Summary in two parts: state of the machines, and problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// State of the machines: `3 of 12 machines are installing`.
    pub doing: String,
    /// `doing` without its verb, for a small screen: `3 of 12 installing`.
    pub brief: String,
    /// Problem that needs a person: `nuc-07 needs you`; `None` if there is none.
    pub needs: Option<String>,
}

impl Headline {
    /// Joins both parts: `3 of 12 machines are installing; nuc-07 needs you`.
    pub fn sentence(&self) -> String {
        match &self.needs {
            Some(needs) => format!("{}; {needs}", self.doing),
            None => self.doing.clone(),
        }
    }

    /// Joins both parts for a small screen: `3 of 12 installing. nuc-07 needs you.`
    pub fn short(&self) -> String {
        match &self.needs {
            Some(needs) => format!("{}. {}.", self.brief, begun(needs)),
            None => format!("{}.", self.brief),
        }
    }
}

/// Capitalizes `this box` at the beginning; does not change the name of a machine.
fn begun(needs: &str) -> String {
    match needs.strip_prefix(THIS_BOX) {
        Some(rest) => format!("This box{rest}"),
        None => needs.to_owned(),
    }
}

/// Summarizes a view in one sentence.
pub fn headline(view: &StatusView) -> Headline {
    let (doing, brief) = doing(view);
    Headline { doing, brief, needs: needs(view) }
}

fn doing(view: &StatusView) -> (String, String) {
    if let Some(step) = view.starting() {
        let text = format!("Starting: {}", step.sentence());
        return (text.clone(), text);
    }
    if view.claim.is_some() {
        let text = "This box is not claimed yet".to_owned();
        return (text, "Not claimed yet".to_owned());
    }
    if view.without_state {
        let text = "State volume lost: no machine is served".to_owned();
        return (text, "State lost, nothing served".to_owned());
    }
    if !view.safe_mode.is_empty() {
        let text = "Safe mode: no machine is served".to_owned();
        return (text, "Safe mode, nothing served".to_owned());
    }
    // Machines that only requested an address may not belong to the rack.
    let new = view.count(&[MachineState::New]);
    let all = view.machines.len() - new;
    if all == 0 {
        let text = match new {
            0 => "No machines yet".to_owned(),
            1 => "No machines yet, 1 new request".to_owned(),
            _ => format!("No machines yet, {new} new requests"),
        };
        return (text.clone(), text);
    }
    // If nothing is in progress, waiting machines are named.
    let moves = view.count(&[MachineState::Booting, MachineState::Installing]) > 0;
    let under_way = view.machines.iter().filter(|machine| machine.under_way()).count();
    let installing = if moves { under_way } else { 0 };
    let counts = [
        (installing, "installing"),
        (view.count(&[MachineState::Removing]), "being removed"),
        (view.count(&[MachineState::Waiting]), "waiting"),
    ];
    match counts.into_iter().find(|(count, _)| *count > 0) {
        Some((count, word)) => part(count, all, word),
        None => part(view.count(&[MachineState::InService]), all, "in service"),
    }
}

/// Returns long and short text: (`3 of 12 machines are installing`, `3 of 12 installing`).
fn part(count: usize, all: usize, word: &str) -> (String, String) {
    match (count, all) {
        (0, 1) => (format!("1 machine, not {word}"), format!("1 machine, not {word}")),
        (1, 1) => (format!("1 machine is {word}"), format!("1 machine {word}")),
        (0, _) => (format!("{all} machines, none {word}"), format!("{all}, none {word}")),
        _ if count == all => {
            (format!("All {all} machines are {word}"), format!("All {all} {word}"))
        }
        (1, _) => (format!("1 of {all} machines is {word}"), format!("1 of {all} {word}")),
        _ => (format!("{count} of {all} machines are {word}"), format!("{count} of {all} {word}")),
    }
}

fn needs(view: &StatusView) -> Option<String> {
    let problems = problems(view);
    let urgent: Vec<_> =
        problems.iter().filter(|problem| problem.urgency != Urgency::Notice).collect();
    let first = urgent.first()?;
    let who = match &first.machine {
        Some(name) => name.as_str(),
        None => THIS_BOX,
    };
    Some(match urgent.len() {
        1 => format!("{who} needs you"),
        count => format!("{who} and {} more need you", count - 1),
    })
}
