//! Menu and confirmation prompts.

use status::view::StatusView;

use super::{COLUMNS, ROWS, Rows};
use crate::draw::text::{fit, fit_name, pair, wrap};
use crate::model::{Action, Buttons, ERASE_HOLD, ScreenInput};
use crate::screens::counted;

pub fn menu(shown: &ScreenInput, at: usize) -> Rows {
    let mut lines: Vec<&str> = shown.actions.iter().map(|action| action.label()).collect();
    lines.push("Back");
    let at = at.min(lines.len() - 1);
    let mut rows = vec![pair("MENU", &format!("{}/{}", at + 1, lines.len()), COLUMNS)];
    let seen = ROWS - 1;
    let first = at.saturating_sub(seen - 1);
    for (place, line) in lines.iter().enumerate().skip(first).take(seen) {
        let mark = if place == at { '>' } else { ' ' };
        rows.push(format!("{mark} {line}"));
    }
    rows
}

pub fn confirm(shown: &ScreenInput, action: Action, machine: &str) -> Rows {
    let title = action.label().to_uppercase();
    let room = COLUMNS.saturating_sub(title.chars().count() + 2);
    let mut rows = vec![match machine {
        "" => format!("{title}?"),
        name => format!("{title} {}?", fit_name(name, room)),
    }];
    rows.extend(wrap(action.effect(), COLUMNS, 3));
    rows.push(format!("hold {}: yes", select(shown)));
    rows.push(format!("or wait {} s: no", shown.cancel_seconds));
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
    let whole = ERASE_HOLD.as_secs();
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
