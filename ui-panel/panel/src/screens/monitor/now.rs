//! F1: health of the box and work in progress.

use api::network::Mode;
use embedded_graphics::mono_font::iso_8859_1::FONT_10X20;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::problem::Urgency;
use status::view::{Machine, headline, moment, problems};
use status::words::{Shape, Tone};

use super::{CELL, Grid, cell};
use crate::draw::palette::{BAD, BORDER, GROUND, INK, INK_2, PAPER, RUN, WAIT};
use crate::draw::text::{fit, fit_name, wrap};
use crate::draw::{bar, qr};
use crate::screens::{pin_lines, waiting};

/// Width of the right part, in columns.
const RIGHT: usize = 40;
/// Number of rows with events, without the heading.
const EVENTS: usize = 8;
/// Maximum number of shown machines in progress.
const IN_PROGRESS: usize = 8;
/// Number of machines in a row of the rack.
const RACK_COLUMNS: usize = 12;
/// Width of a cell of the rack, in columns.
const RACK_CELL: usize = 6;
/// Width of a module of the QR code, in pixels, and of its quiet zone, in modules.
const MODULE: u32 = 6;
const QUIET: u32 = 4;

pub fn draw(grid: &mut Grid<'_>) {
    let left = grid.columns - RIGHT - 1;
    let events = grid.bottom() - EVENTS - 1;
    let text = headline(grid.view).sentence();
    for (at, line) in wrap(&text, (left - 1) * 9 / 10, 1).iter().enumerate() {
        let at = cell(1, 2 + at);
        grid.sheet.write(at, &FONT_10X20, INK, line);
    }
    let room = events - 4;
    let needs = if room > 24 { 6 } else { 3 };
    let row = needs_you(grid, 4, needs, left);
    let row = in_progress(grid, row + 1, left);
    rack(grid, row + 1, events, left);
    addresses(grid, left + 1, events);
    event_lines(grid, events);
}

fn needs_you(grid: &mut Grid<'_>, row: usize, most: usize, width: usize) -> usize {
    let problems = problems(grid.view);
    grid.head(1, row, "NEEDS YOU", width);
    let mut row = row + 1;
    if let Some(claim) = &grid.view.claim {
        let address = claim.address().unwrap_or("its address, once it has one,");
        let text = format!("Claim this box: scan the code, or open {address} and type it.");
        grid.put(1, row, WAIT, &text, width - 1);
        return row + 1;
    }
    if problems.is_empty() {
        grid.put(1, row, INK_2, "Nothing.", width);
        return row + 1;
    }
    for problem in problems.iter().take(most) {
        let (sign, tone) = match problem.urgency {
            Urgency::Notice => (Shape::HalfDot, Tone::Waiting),
            Urgency::Box | Urgency::Machine => (Shape::Cross, Tone::Bad),
        };
        grid.sign(1, row, sign, tone);
        let when = problem.since.map_or(String::new(), |at| grid.view.ago(at));
        let taken = when.chars().count();
        let text = problem.trouble.sentence();
        grid.put(3, row, INK, &text, width.saturating_sub(taken + 5));
        grid.put(width - taken, row, INK_2, &when, taken);
        row += 1;
    }
    if problems.len() > most {
        grid.put(3, row, INK_2, &format!("and {} more", problems.len() - most), width);
        row += 1;
    }
    row
}

fn in_progress(grid: &mut Grid<'_>, row: usize, width: usize) -> usize {
    let machines: Vec<&Machine> = grid.view.machines.iter().filter(|it| it.under_way()).collect();
    grid.head(1, row, "IN PROGRESS", width);
    let mut row = row + 1;
    if machines.is_empty() {
        grid.put(1, row, INK_2, "Nothing is being installed.", width);
        return row + 1;
    }
    for machine in machines.iter().take(IN_PROGRESS) {
        progress(grid, row, machine, width);
        row += 1;
    }
    if machines.len() > IN_PROGRESS {
        grid.put(1, row, INK_2, &format!("and {} more", machines.len() - IN_PROGRESS), width);
        row += 1;
    }
    row
}

/// Draws name, action, bar, percent, rate and time left, as far as there is space.
fn progress(grid: &mut Grid<'_>, row: usize, machine: &Machine, width: usize) {
    let wide = width > 60;
    let bar_columns = if wide { 24 } else { 12 };
    grid.put(1, row, INK, &fit_name(&machine.name, 12), 12);
    let step = if machine.step.is_empty() { machine.state.word().text } else { &machine.step };
    let Some(percent) = machine.percent else {
        return grid.put(14, row, WAIT, step, width - 14);
    };
    grid.put(14, row, INK_2, step, 12);
    let area = Rectangle::new(
        cell(27, row) + Point::new(0, 3),
        Size::new(bar_columns as u32 * CELL.width, CELL.height - 6),
    );
    bar::of_pixels(&mut grid.sheet, area, percent, (BORDER, RUN));
    let column = 28 + bar_columns;
    grid.put(column, row, INK, &format!("{:>3}%", percent.min(100)), 4);
    if wide {
        let rate =
            machine.bytes_per_second.map_or(String::new(), |it| format!("{}/s", moment::bytes(it)));
        let left = machine.millis_left.map_or(String::new(), |it| moment::rough(it.div_ceil(1000)));
        grid.put(column + 6, row, INK_2, &format!("{rate}  {left}"), width - column - 6);
    }
}

fn rack(grid: &mut Grid<'_>, row: usize, end: usize, width: usize) {
    let machines = &grid.view.machines;
    if row + 1 >= end {
        return;
    }
    grid.head(1, row, "RACK", width);
    if machines.is_empty() {
        let port = grid.view.nics.iter().find(|nic| nic.provisions());
        let port = port.map_or("this box", |nic| nic.name.as_str());
        let text =
            format!("No machines yet. Plug one into {port} and switch it on with network boot.");
        grid.put(1, row + 1, INK_2, &text, width - 1);
        return;
    }
    let across = RACK_COLUMNS.min(width / RACK_CELL);
    let room = (end - row - 1).saturating_sub(1) * across;
    for (at, machine) in machines.iter().enumerate().take(room) {
        let (column, row) = (1 + at % across * RACK_CELL, row + 1 + at / across);
        grid.sign(column, row, machine.state.shape(), machine.tone());
        grid.put(column + 2, row, INK, &tail(&machine.name), RACK_CELL - 3);
    }
}

/// Returns the end of a name, because names of machines differ at their ends.
fn tail(name: &str) -> String {
    let end: Vec<char> = name.chars().rev().take(RACK_CELL - 3).collect();
    let end: String = end.into_iter().rev().collect();
    end.trim_start_matches(['-', '.', ' ']).to_owned()
}

fn addresses(grid: &mut Grid<'_>, column: usize, end: usize) {
    let view = grid.view;
    let mut row = 2;
    for nic in view.nics.iter().take(4) {
        let address = if nic.address.is_empty() { "no address" } else { &nic.address };
        grid.put(column, row, INK, &format!("{:6} {address}", fit(&nic.name, 6)), RIGHT);
        let link = format!("{} · {}", nic.link(), nic.role.word());
        grid.put(column + 7, row + 1, INK_2, &link, RIGHT - 7);
        let dhcp = match (nic.mode, nic.armed_since) {
            (Mode::Off, _) => String::new(),
            (mode, Some(_)) => format!("DHCP {mode}"),
            (mode, None) => format!("DHCP {mode}, not armed"),
        };
        grid.put(column + 7, row + 2, INK_2, &dhcp, RIGHT - 7);
        row += 3 - usize::from(dhcp.is_empty());
        for server in nic.foreign.iter().take(1) {
            let text = format!("other DHCP server {}", server.address);
            grid.put(column + 7, row, BAD, &text, RIGHT - 7);
            row += 1;
        }
    }
    row += 1;
    if view.claim.is_none() && !grid.console.shows_pin(grid.now) {
        return grid.put(column, row, INK_2, "q = show the pin", RIGHT);
    }
    grid.put(column, row, INK_2, "Pin", 6);
    grid.put(column + 7, row, INK, &pin_lines(&view.pin).join(" "), RIGHT - 7);
    let Some(claim) = &view.claim else { return };
    grid.put(column, row + 1, INK_2, "Code", 6);
    grid.put(column + 7, row + 1, INK, &claim.code, RIGHT - 7);
    let link = claim.link();
    let code = link.as_deref().and_then(|link| Some((link, qr::encode(link)?)));
    let Some((link, code)) = code else {
        return grid.put(column, row + 3, WAIT, &waiting(view), RIGHT);
    };
    let side = (qr::MODULES + 2 * QUIET) * MODULE;
    let area = Rectangle::new(cell(column + 7, row + 3), Size::new_equal(side));
    if row + 3 + side.div_ceil(CELL.height) as usize <= end {
        qr::draw(&mut grid.sheet, area, MODULE, (link, &code), (PAPER, GROUND));
    }
}

fn event_lines(grid: &mut Grid<'_>, row: usize) {
    let view = grid.view;
    let width = grid.columns - 1;
    grid.head(1, row, "EVENTS", width);
    for (at, event) in view.events.iter().take(EVENTS).enumerate() {
        let row = row + 1 + at;
        let ink = if event.warning { BAD } else { INK_2 };
        grid.put(1, row, INK_2, &view.time_of_day(event.at), 5);
        let subject = if event.subject.is_empty() { "this box" } else { &event.subject };
        grid.put(8, row, INK, &fit_name(subject, 14), 14);
        grid.put(23, row, ink, &event.sentence, width - 23);
    }
}
