//! Menu and confirmation prompts.

use status::view::StatusView;

use super::{COLUMNS, ROWS, Rows};
use crate::draw::text::{fit, fit_name, pair, wrap};
use crate::model::{Action, Buttons, LONG_HOLD, MachineAction, PanelOrder, ScreenInput};
use crate::screens::{Question, action_lines, counted, menu_lines};

pub fn menu(shown: &ScreenInput, at: usize) -> Rows {
    let (lines, at) = menu_lines(shown.menu().into_iter().map(Action::label), at);
    listed("MENU", &lines, at)
}

pub fn actions(
    view: &StatusView,
    shown: &ScreenInput,
    name: &str,
    at: Option<MachineAction>,
) -> Rows {
    let (lines, at) = action_lines(view, shown, name, at);
    let place = format!("{}/{}", at + 1, lines.len());
    let room = COLUMNS.saturating_sub(place.len() + 1);
    listed(&fit_name(name, room), &lines, at)
}

/// Returns a title with the position of the cursor, and the lines around the cursor.
fn listed(title: &str, lines: &[&str], at: usize) -> Rows {
    let mut rows = vec![pair(title, &format!("{}/{}", at + 1, lines.len()), COLUMNS)];
    let seen = ROWS - 1;
    let first = at.saturating_sub(seen - 1);
    for (place, line) in lines.iter().enumerate().skip(first).take(seen) {
        let mark = if place == at { '>' } else { ' ' };
        rows.push(format!("{mark} {line}"));
    }
    rows
}

pub fn confirm(view: &StatusView, shown: &ScreenInput, order: &PanelOrder) -> Rows {
    let question = Question::of(view, order, COLUMNS);
    let title = match order {
        PanelOrder::Box(_) => question.title.to_uppercase(),
        PanelOrder::Machine(_) => question.title,
    };
    let mut rows = vec![title];
    rows.extend(wrap(&question.warning, COLUMNS, 3));
    let (hold, held) = (question.hold, shown.held_seconds);
    rows.push(match held {
        0 if hold > 1 => format!("hold {} {hold} s: yes", select(shown)),
        0 => format!("hold {}: yes", select(shown)),
        held => format!("in {} s", hold.saturating_sub(held)),
    });
    rows.push(format!("or wait {} s: no", shown.cancel_seconds));
    rows
}

pub fn outcome(reason: &str) -> Rows {
    let mut rows = vec!["NOT DONE".to_owned()];
    rows.extend(wrap(reason, COLUMNS, ROWS - 1));
    rows
}

pub fn reset(shown: &ScreenInput) -> Rows {
    let mut rows = vec!["FACTORY RESET?".to_owned()];
    rows.extend(wrap("erases everything but the system itself", COLUMNS, 2));
    rows.push(String::new());
    let (yes, no) = match shown.buttons {
        Buttons::One => ("hold: go on", "press: no"),
        _ => ("SEL go on", "UP/DN no"),
    };
    rows.extend([yes.to_owned(), no.to_owned()]);
    rows
}

pub fn erase(view: &StatusView, shown: &ScreenInput) -> Rows {
    let whole = LONG_HOLD.as_secs();
    let mut rows = vec!["FACTORY RESET".to_owned()];
    rows.push(fit(&format!("erases {},", counted(view.machines.len(), "machine")), COLUMNS));
    let keys = counted(view.system.keys as usize, "key");
    rows.push(fit(&format!("{keys}, all settings"), COLUMNS));
    match shown.held_seconds {
        0 => {
            rows.push(format!("hold {} {whole} s: ERASE", select(shown)));
            rows.push(format!("or wait {} s: cancel", shown.cancel_seconds));
        }
        held => {
            rows.push(format!("ERASING IN {} s", whole.saturating_sub(held)));
            rows.push("let go: cancel".to_owned());
        }
    }
    rows
}

fn select(shown: &ScreenInput) -> &'static str {
    match shown.buttons {
        Buttons::One => "key",
        _ => "SEL",
    }
}
