//! List of the machines, and one machine with its latest events.

use status::view::{Machine, StatusView};

use super::{COLUMNS, ROWS, Rows};
use crate::draw::text::{fit, fit_name, pair, wrap};
use crate::model::{Buttons, ScreenInput, machine, permitted};

/// Width of a machine's name in the list, in columns.
const NAME: usize = 9;

pub fn list(view: &StatusView, at: usize) -> Rows {
    let count = view.machines.len();
    let at = at.min(count.saturating_sub(1));
    if count == 0 {
        return vec!["MACHINES".to_owned(), "no machines yet".to_owned()];
    }
    let mut rows = vec![pair("MACHINES", &format!("{}/{count}", at + 1), COLUMNS)];
    let seen = ROWS - 1;
    let first = (at + 1).saturating_sub(seen);
    let machines = view.machines.iter().enumerate().skip(first).take(seen);
    rows.extend(machines.map(|(place, machine)| line(machine, place == at)));
    rows
}

/// Formats a line of the list, such as `>nuc-04    68%` or ` nuc-07    Failed`.
fn line(machine: &Machine, chosen: bool) -> String {
    let mark = if chosen { '>' } else { ' ' };
    let state = match machine.percent {
        Some(percent) => format!("{}%", percent.min(100)),
        None => machine.state.word().text.to_owned(),
    };
    fit(&format!("{mark}{:NAME$} {state}", fit_name(&machine.name, NAME)), COLUMNS)
}

pub fn one(view: &StatusView, shown: &ScreenInput, name: &str) -> Rows {
    let Some(machine) = machine(view, name) else {
        return vec!["machine is gone".to_owned()];
    };
    let mut rows = vec![fit_name(&machine.name, COLUMNS), fit(&machine.status(), COLUMNS)];
    rows.push(fit(&machine.ip, COLUMNS));
    let keys = match (permitted(machine, &shown.actions).is_empty(), shown.buttons) {
        (_, Buttons::None) => "",
        (false, Buttons::Three) => "SEL actions  DN back",
        (true, Buttons::Three) => "DN back",
        (false, Buttons::One) => "hold: actions",
        (true, Buttons::One) => "press: back",
    };
    let last = machine.story.last().map_or(&machine.step, |it| &it.text);
    rows.extend(wrap(last, COLUMNS, ROWS - 1 - rows.len()));
    rows.resize(ROWS - 1, String::new());
    rows.push(keys.to_owned());
    rows
}
