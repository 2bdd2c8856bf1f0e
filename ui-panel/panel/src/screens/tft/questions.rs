//! Menu and confirmation prompts.

use embedded_graphics::mono_font::iso_8859_1::{FONT_9X15, FONT_9X18_BOLD};
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;

use super::{COLUMNS, FOOTER, Frame, MARGIN, row_y};
use crate::draw::bar;
use crate::draw::palette::{BAD, BORDER, INK, INK_2, WAIT};
use crate::draw::text::{fit_name, wrap};
use crate::model::{Action, LONG_HOLD, MachineAction, PanelOrder};
use crate::screens::{Question, action_lines, counted, menu_lines};

/// Maximum number of menu lines, and their height in pixels.
const LINES: usize = 8;
const LINE: i32 = 22;

/// Maximum number of rows of a prompt's text.
const TEXT_ROWS: usize = 4;

pub fn menu(frame: &mut Frame<'_>, at: usize) {
    let (lines, at) = menu_lines(frame.shown.menu().into_iter().map(Action::label), at);
    listed(frame, &lines, at);
}

pub fn actions(frame: &mut Frame<'_>, name: &str, at: Option<MachineAction>) {
    let (lines, at) = action_lines(frame.view, frame.shown, name, at);
    listed(frame, &lines, at);
    // The header has the name of the box, so the last row names the machine.
    let text = format!("of {}", fit_name(name, COLUMNS - 3));
    frame.right(FOOTER - 18, INK_2, &text, COLUMNS);
}

fn listed(frame: &mut Frame<'_>, lines: &[&str], at: usize) {
    let first = (at + 1).saturating_sub(LINES);
    for (place, line) in lines.iter().enumerate().skip(first).take(LINES) {
        let y = 35 + LINE * (place - first) as i32;
        let ink = if place == at { INK } else { INK_2 };
        if place == at {
            let area = Rectangle::new(Point::new(2, y - 3), Size::new(316, LINE as u32));
            frame.edge(area, INK, 2);
        }
        frame.text(Point::new(MARGIN, y), &FONT_9X15, ink, line, COLUMNS);
    }
    frame.footer(["Select", "Up", "Down"]);
}

pub fn confirm(frame: &mut Frame<'_>, order: &PanelOrder) {
    let question = Question::of(frame.view, order, COLUMNS);
    heading(frame, &question.title, &question.effect);
    match frame.shown.held_seconds {
        0 => {
            let left = format!("or wait {} s: no", frame.shown.cancel_seconds);
            frame.row(5, INK, &format!("Hold the button {} s: yes", question.hold));
            frame.row(6, INK_2, &left);
        }
        held => {
            frame.row(5, WAIT, &format!("In {} s", question.hold.saturating_sub(held)));
            frame.row(6, INK_2, "let go: no");
        }
    }
    frame.footer(["Hold: yes", "No", "No"]);
}

pub fn outcome(frame: &mut Frame<'_>, reason: &str) {
    heading(frame, "Not done", reason);
    frame.footer(["Home", "Home", "Home"]);
}

pub fn reset(frame: &mut Frame<'_>) {
    heading(frame, "Factory reset?", "It erases everything but the system itself.");
    let left = format!("or wait {} s: no", frame.shown.cancel_seconds);
    frame.row(6, INK_2, &left);
    frame.footer(["Go on", "No", "No"]);
}

pub fn erase(frame: &mut Frame<'_>) {
    let view = frame.view;
    let machines = counted(view.machines.len(), "machine");
    let keys = counted(view.system.keys as usize, "key");
    heading(frame, "Factory reset", &format!("Erases {machines}, {keys} and all settings."));
    let whole = LONG_HOLD.as_secs();
    let held = frame.shown.held_seconds.min(whole);
    if held > 0 {
        let area = Rectangle::new(Point::new(MARGIN, row_y(4)), Size::new(304, 16));
        let percent = (held * 100 / whole) as u8;
        bar::of_pixels(&mut frame.sheet, area, percent, (BORDER, BAD));
        frame.row(5, BAD, &format!("Erasing in {} s", whole - held));
        frame.row(6, INK_2, "let go: cancel");
    } else {
        frame.row(5, INK, &format!("Hold the button {whole} s: ERASE"));
        let left = format!("or wait {} s: cancel", frame.shown.cancel_seconds);
        frame.row(6, INK_2, &left);
    }
    frame.footer(["Hold: ERASE", "No", "No"]);
}

fn heading(frame: &mut Frame<'_>, title: &str, text: &str) {
    let at = Point::new(MARGIN, row_y(0));
    frame.text(at, &FONT_9X18_BOLD, WAIT, title, COLUMNS);
    for (at, line) in wrap(text, COLUMNS, TEXT_ROWS).iter().enumerate() {
        let at = Point::new(MARGIN, row_y(1) + 22 * at as i32);
        frame.text(at, &FONT_9X15, INK, line, COLUMNS);
    }
}
