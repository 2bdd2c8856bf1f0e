//! Start page: the steps of the start, with their durations.

use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15};
use embedded_graphics::prelude::Point;
use status::view::BootStep;
use status::words::Shape;

use super::{COLUMNS, Frame, MARGIN, SMALL_COLUMNS};
use crate::draw::palette::{BORDER, INK, INK_2, OK, RUN, WAIT};
use crate::draw::shape;

/// Maximum number of steps on the page.
const STEPS: usize = 7;
const TOP: i32 = 36;
const HEIGHT: i32 = 24;

pub fn draw(frame: &mut Frame<'_>) {
    let view = frame.view;
    for (at, step) in view.boot.iter().take(STEPS).enumerate() {
        let y = TOP + HEIGHT * at as i32;
        let (sign, color, ink) = match (step.done, step.took_millis) {
            (true, _) => (Shape::Tick, OK, INK_2),
            (false, Some(_)) if step.slow() => (Shape::Arc, WAIT, INK),
            (false, Some(_)) => (Shape::Arc, RUN, INK),
            (false, None) => (Shape::Minus, BORDER, INK_2),
        };
        shape::draw(&mut frame.sheet, Point::new(MARGIN, y + 1), 14, sign, color);
        let taken = frame.right(y, ink, &took(step), 10);
        let room = (COLUMNS - 3).saturating_sub(taken);
        frame.text(Point::new(MARGIN + 24, y), &FONT_9X15, ink, &step.name, room);
    }
    let note = match view.starting() {
        Some(step) if step.slow() => {
            let usual = step.usual_millis.div_ceil(1000);
            format!("Taking longer than usual (usually {usual} s)")
        }
        _ => "Starting".to_owned(),
    };
    frame.footer(["", "", ""]);
    frame.text(Point::new(MARGIN, super::FOOTER + 8), &FONT_6X10, INK_2, &note, SMALL_COLUMNS);
}

fn took(step: &BootStep) -> String {
    step.took_millis.map_or(String::new(), stdx::seconds)
}
