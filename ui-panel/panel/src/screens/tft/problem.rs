//! Page of a problem: attempt, object, cause and remedy.

use embedded_graphics::mono_font::iso_8859_1::{FONT_9X15, FONT_9X18_BOLD};
use embedded_graphics::prelude::Point;
use status::view::Problem;
use status::view::problem::Urgency;
use status::words::Shape;

use super::{COLUMNS, Frame, MARGIN, row_y};
use crate::draw::palette::{BAD, INK, INK_2, OK, WAIT};
use crate::draw::shape;
use crate::draw::text::wrap;
use crate::model::{Buttons, DETAIL_LINES_MAX, find, machine, permitted, retry};

/// Maximum number of rows of the message.
const ROWS: usize = 5;
/// Distance of two rows in pixels.
const STEP: i32 = 22;

pub fn draw(frame: &mut Frame<'_>, key: &str) {
    let Some(problem) = find(frame.view, key) else {
        shape::draw(&mut frame.sheet, Point::new(MARGIN, 37), 16, Shape::Tick, OK);
        frame.text(Point::new(MARGIN + 24, 37), &FONT_9X15, INK, "No problems", COLUMNS - 3);
        return frame.footer(["", "Back", "Next"]);
    };
    title(frame, &problem);
    write(frame, &problem.trouble.sentence(), 0);
    if let Some(at) = problem.since {
        let view = frame.view;
        let mut text = format!("{}, {}", view.time_of_day(at), view.ago(at));
        if let Some((attempt, of)) = problem.attempt {
            text.push_str(&format!(", try {attempt} of {of}"));
        }
        frame.text(Point::new(MARGIN, 192), &FONT_9X15, INK_2, &text, COLUMNS);
    }
    let shown = frame.shown;
    let subject = problem.machine.as_ref().and_then(|name| machine(frame.view, name));
    let has_actions = subject.is_some_and(|it| !permitted(it, &shown.actions).is_empty());
    let (select, up) = match retry(frame.view, &problem, &shown.actions) {
        _ if shown.buttons == Buttons::One && has_actions => ("actions", ""),
        Some(_) => ("Retry", "Details"),
        None => ("Details", ""),
    };
    frame.footer([select, up, "Later"]);
}

pub fn details(frame: &mut Frame<'_>, key: &str, line: usize) {
    let Some(problem) = find(frame.view, key) else {
        frame.row(0, INK_2, "No problems");
        return frame.footer(["Back", "", ""]);
    };
    title(frame, &problem);
    write(frame, &problem.trouble.sentence(), line);
    if !problem.trouble.code.is_empty() {
        let code = format!("code: {}", problem.trouble.code);
        frame.text(Point::new(MARGIN, row_y(6)), &FONT_9X15, INK_2, &code, COLUMNS);
    }
    frame.footer(["Back", "Up", "Down"]);
}

fn title(frame: &mut Frame<'_>, problem: &Problem) {
    let (sign, color) = match problem.urgency {
        Urgency::Notice => (Shape::HalfDot, WAIT),
        Urgency::Box | Urgency::Machine => (Shape::Cross, BAD),
    };
    shape::draw(&mut frame.sheet, Point::new(MARGIN, 37), 16, sign, color);
    let at = Point::new(MARGIN + 24, 36);
    frame.text(at, &FONT_9X18_BOLD, color, &problem.title, COLUMNS - 3);
}

fn write(frame: &mut Frame<'_>, sentence: &str, from: usize) {
    let rows = if from == 0 { ROWS } else { DETAIL_LINES_MAX };
    let lines = wrap(sentence, COLUMNS, rows.max(from + ROWS));
    let from = from.min(lines.len().saturating_sub(1));
    for (at, line) in lines.iter().skip(from).take(ROWS).enumerate() {
        let at = Point::new(MARGIN, 66 + STEP * at as i32);
        frame.text(at, &FONT_9X15, INK, line, COLUMNS);
    }
}
