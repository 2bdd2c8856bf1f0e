//! Details of a machine.

use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15, FONT_9X18_BOLD};
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::Machine;

use super::{COLUMNS, Frame, MARGIN, SMALL_COLUMNS};
use crate::draw::palette::{self, BAD, BORDER, INK, INK_2};
use crate::draw::text::{fit_name, wrap};
use crate::draw::{bar, shape};
use crate::model::{MachineAction, machine, permitted};

/// Maximum number of events on the page.
const SENTENCES: usize = 3;

pub fn draw(frame: &mut Frame<'_>, name: &str) {
    let Some(machine) = machine(frame.view, name) else {
        frame.row(0, INK_2, "This machine is gone");
        return frame.footer(["", "", "Back"]);
    };
    let color = palette::of(machine.tone());
    shape::draw(&mut frame.sheet, Point::new(MARGIN, 36), 16, machine.state.shape(), color);
    let taken = frame.right(37, color, &machine.status(), 16);
    let name = fit_name(&machine.name, COLUMNS.saturating_sub(taken + 4));
    frame.text(Point::new(MARGIN + 24, 35), &FONT_9X18_BOLD, INK, &name, COLUMNS);
    progress(frame, machine);
    let mut y = 108;
    let first = machine.story.len().saturating_sub(SENTENCES);
    for sentence in &machine.story[first..] {
        let ink = if sentence.warning { BAD } else { INK_2 };
        let text = format!("{} {}", frame.view.time_of_day(sentence.at), sentence.text);
        for line in wrap(&text, SMALL_COLUMNS, 2) {
            frame.text(Point::new(MARGIN, y), &FONT_6X10, ink, &line, SMALL_COLUMNS);
            y += 12;
        }
        y += 3;
    }
    let mac = machine.mac.map_or(String::new(), |mac| mac.to_string());
    let address = format!("{}  {mac}", machine.ip);
    frame.text(Point::new(MARGIN, 197), &FONT_9X15, INK, &address, COLUMNS);
    let permitted = permitted(machine, &frame.shown.actions);
    let retry = MachineAction::Table(machine_actions::Action::Retry);
    let retry = if permitted.contains(&retry) { "Retry" } else { "" };
    let actions = if permitted.is_empty() { "" } else { "Actions" };
    frame.footer([actions, retry, "Back"]);
}

fn progress(frame: &mut Frame<'_>, machine: &Machine) {
    frame.text(Point::new(MARGIN, 60), &FONT_9X15, INK, &machine.step, COLUMNS);
    let Some(percent) = machine.percent else { return };
    let area = Rectangle::new(Point::new(MARGIN, 82), Size::new(160, 14));
    let color = palette::of(machine.tone());
    bar::of_pixels(&mut frame.sheet, area, percent, (BORDER, color));
    let left =
        machine.millis_left.map_or(String::new(), |it| format!(" {} left", stdx::seconds(it)));
    let text = format!("{}%{left}", percent.min(100));
    frame.text(Point::new(MARGIN + 168, 81), &FONT_9X15, INK_2, &text, 15);
}
