//! Page with all machines in rack order, one cell each.

use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15};
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::Machine;

use super::{COLUMNS, Frame, MARGIN};
use crate::draw::palette::{self, HAIRLINE, INK, INK_2};
use crate::draw::text::fit_name;
use crate::draw::{bar, shape};

/// Size of a cell, and distance between two cells, in pixels.
const CELL: Size = Size::new(72, 33);
const STEP: Point = Point::new(77, 36);
const TOP: i32 = 34;
/// Number of cells in a row, and of cells on a page.
const ACROSS: usize = 4;
const PAGE: usize = 20;

pub fn draw(frame: &mut Frame<'_>, cursor: usize) {
    let machines = &frame.view.machines;
    if machines.is_empty() {
        let at = Point::new(MARGIN, TOP);
        frame.text(at, &FONT_9X15, INK_2, "No machines yet", COLUMNS);
    }
    let cursor = cursor.min(machines.len().saturating_sub(1));
    let first = cursor / PAGE * PAGE;
    for (at, machine) in machines.iter().enumerate().skip(first).take(PAGE) {
        let place = at - first;
        let (across, down) = ((place % ACROSS) as i32, (place / ACROSS) as i32);
        let corner = Point::new(MARGIN + STEP.x * across, TOP + STEP.y * down);
        cell(frame, corner, machine, at == cursor);
    }
    frame.footer(["Open", "Up", "Down"]);
}

fn cell(frame: &mut Frame<'_>, corner: Point, machine: &Machine, chosen: bool) {
    let (edge, width) = if chosen { (INK, 2) } else { (HAIRLINE, 1) };
    frame.edge(Rectangle::new(corner, CELL), edge, width);
    let color = palette::of(machine.tone());
    let sign = corner + Point::new(5, 6);
    shape::draw(&mut frame.sheet, sign, 11, machine.state.shape(), color);
    let name = fit_name(&machine.name, 8);
    frame.text(corner + Point::new(20, 7), &FONT_6X10, INK, &name, 8);
    if let Some(percent) = machine.percent {
        let area = Rectangle::new(corner + Point::new(5, 22), Size::new(62, 6));
        bar::of_pixels(&mut frame.sheet, area, percent, (HAIRLINE, color));
    }
}
