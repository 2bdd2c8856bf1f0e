//! F1: health of the box and work in progress.

use api::network::Mode;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_1::FONT_10X20;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::problem::Urgency;
use status::view::{Machine, Problem, headline, moment, problems};
use status::words::{Shape, Tone};

use super::Grid;
use crate::draw::palette::{BAD, BORDER, GROUND, INK, INK_2, PAPER, RUN, WAIT};
use crate::draw::text::{fit, fit_name, wrap};
use crate::draw::{bar, qr};
use crate::screens::{pin_lines, waiting};

/// Width of the right part, in columns.
const RIGHT: usize = 36;
/// Font of the headline, not higher than a row with a free row below.
const HEADLINE: MonoFont<'static> = FONT_10X20;
/// Maximum number of rows with events, without the heading.
const EVENTS: usize = 8;
/// Maximum number of shown machines in progress.
const IN_PROGRESS: usize = 8;
/// Number of rows that the rack gets before problems do.
const RACK_ROWS: usize = 3;
/// Maximum number of machines in a row of the rack.
const RACK_COLUMNS: usize = 12;
/// Minimum width of a cell of the rack and of the name in it, in columns.
const RACK_CELL: usize = 6;
const RACK_NAME: usize = 3;
/// Column of a progress bar, and its minimum and maximum width, in columns.
const BAR: usize = 27;
const BAR_MIN: usize = 12;
const BAR_MAX: usize = 24;
/// Columns of percent, rate and time left behind the bar.
const FIGURES: usize = 22;
/// Minimum and maximum width of a module of the QR code, in pixels, and its quiet zone, in modules.
const MODULE_MIN: u32 = 4;
const MODULE_MAX: u32 = 9;
const QUIET: u32 = 4;
/// Minimum number of rows for problems, without their heading.
const PROBLEM_ROWS_MIN: usize = 4;
/// First row of the left part below the headline.
const TOP: usize = 4;

pub fn draw(grid: &mut Grid<'_>) {
    let left = grid.columns - RIGHT - 1;
    let shown = EVENTS.min(grid.rows / 5);
    // The claim needs the space of the events.
    let events = match grid.view.claim {
        Some(_) => grid.bottom(),
        None => grid.bottom() - shown - 1,
    };
    let text = headline(grid.view).sentence();
    let room =
        (left - 1) * grid.glyphs.cell.width as usize / HEADLINE.character_size.width as usize;
    for (at, line) in wrap(&text, room, 1).iter().enumerate() {
        let at = grid.cell(1, 2 + at);
        grid.sheet.write(at, &HEADLINE, INK, line);
    }
    let below = rows_in_progress(grid) + 2 + rows_of_rack(grid, left);
    let room = events.saturating_sub(TOP + 1 + below).max(PROBLEM_ROWS_MIN);
    let row = needs_you(grid, TOP, room, left);
    let row = in_progress(grid, row + 1, left);
    rack(grid, row + 1, events, left);
    addresses(grid, left + 1, events);
    if grid.view.claim.is_none() {
        event_lines(grid, events, shown);
    }
}

/// Draws the problems with their remedies, in at most `room` rows below the heading.
fn needs_you(grid: &mut Grid<'_>, row: usize, room: usize, width: usize) -> usize {
    let problems = problems(grid.view);
    grid.head(1, row, "NEEDS YOU", width);
    let mut row = row + 1;
    if let Some(claim) = &grid.view.claim {
        let address = claim.address().unwrap_or("its address, once it has one,");
        let text = format!("Claim this box: scan the code, or open {address} and type it.");
        for line in wrap(&text, width - 1, room) {
            grid.put(1, row, WAIT, &line, width - 1);
            row += 1;
        }
        return row;
    }
    if problems.is_empty() {
        grid.put(1, row, INK_2, "Nothing.", width);
        return row + 1;
    }
    let end = row + room;
    for (at, problem) in problems.iter().enumerate() {
        let more = problems.len() - at;
        // The last row is for the number of the problems without space.
        let free = (end - row).saturating_sub(usize::from(more > 1));
        if free == 0 {
            grid.put(3, row, INK_2, &format!("and {more} more"), width - 3);
            return row + 1;
        }
        row += draw_problem(grid, row, problem, free, width);
    }
    row
}

/// Draws a problem in at most `room` rows. Returns the number of rows.
fn draw_problem(
    grid: &mut Grid<'_>,
    row: usize,
    problem: &Problem,
    room: usize,
    width: usize,
) -> usize {
    let (sign, tone) = match problem.urgency {
        Urgency::Notice => (Shape::HalfDot, Tone::Waiting),
        Urgency::Box | Urgency::Machine => (Shape::Cross, Tone::Bad),
    };
    grid.sign(1, row, sign, tone);
    let when = problem.since.map_or(String::new(), |at| grid.view.ago(at));
    let taken = when.chars().count();
    grid.put(width - taken, row, INK_2, &when, taken);
    let lines = wrap(&problem.trouble.sentence(), width.saturating_sub(taken + 5), room);
    for (at, line) in lines.iter().enumerate() {
        grid.put(3, row + at, INK, line, width - 3);
    }
    lines.len().max(1)
}

/// Returns the number of rows of the work in progress, with its heading.
fn rows_in_progress(grid: &Grid<'_>) -> usize {
    let count = grid.view.machines.iter().filter(|it| it.under_way()).count();
    1 + count.clamp(1, IN_PROGRESS) + usize::from(count > IN_PROGRESS)
}

/// Returns the number of cells in a row of the rack, and their width in columns: cells with whole
/// names if few rows are enough, else the narrowest cells.
fn rack_cells(grid: &Grid<'_>, width: usize) -> (usize, usize) {
    let names = grid.view.machines.iter().map(|machine| machine.name.chars().count());
    let wide = (names.max().unwrap_or(0) + RACK_CELL - RACK_NAME).max(RACK_CELL);
    let across = |cell: usize| RACK_COLUMNS.min(width / cell);
    let rows = grid.view.machines.len().div_ceil(across(wide).max(1));
    if across(wide) > 0 && rows <= RACK_ROWS {
        return (across(wide), wide);
    }
    (across(RACK_CELL).max(1), RACK_CELL)
}

/// Returns the number of rows of the rack, with its heading.
fn rows_of_rack(grid: &Grid<'_>, width: usize) -> usize {
    let (across, _) = rack_cells(grid, width);
    1 + grid.view.machines.len().div_ceil(across).clamp(1, RACK_ROWS)
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
    let wide = width >= BAR + BAR_MIN + FIGURES;
    let bar_columns = if wide { (width - BAR - FIGURES).min(BAR_MAX) } else { BAR_MIN };
    let cell = grid.glyphs.cell;
    grid.put(1, row, INK, &fit_name(&machine.name, 12), 12);
    let step = if machine.step.is_empty() { machine.state.word().text } else { &machine.step };
    let Some(percent) = machine.percent else {
        return grid.put(14, row, WAIT, step, width - 14);
    };
    grid.put(14, row, INK_2, step, 12);
    let area = Rectangle::new(
        grid.cell(BAR, row) + Point::new(0, 3),
        Size::new(bar_columns as u32 * cell.width, cell.height - 6),
    );
    bar::of_pixels(&mut grid.sheet, area, percent, (BORDER, RUN));
    let column = BAR + 1 + bar_columns;
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
        for (at, line) in wrap(&text, width - 1, (end - row - 1).min(2)).iter().enumerate() {
            grid.put(1, row + 1 + at, INK_2, line, width - 1);
        }
        return;
    }
    let (across, wide) = rack_cells(grid, width);
    let room = (end - row - 1).saturating_sub(1) * across;
    for (at, machine) in machines.iter().enumerate().take(room) {
        let (column, row) = (1 + at % across * wide, row + 1 + at / across);
        grid.sign(column, row, machine.state.shape(), machine.tone());
        let name = if wide > RACK_CELL { machine.name.to_string() } else { tail(&machine.name) };
        grid.put(column + 2, row, INK, &name, wide - RACK_CELL + RACK_NAME);
    }
}

/// Returns the end of a name, because names of machines differ at their ends.
fn tail(name: &str) -> String {
    let end: Vec<char> = name.chars().rev().take(RACK_NAME).collect();
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
            for line in wrap(&text, RIGHT - 7, 2) {
                grid.put(column + 7, row, BAD, &line, RIGHT - 7);
                row += 1;
            }
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
    let (top, cell) = (row + 3, grid.glyphs.cell);
    let room =
        Size::new((RIGHT - 7) as u32 * cell.width, end.saturating_sub(top) as u32 * cell.height);
    let side = |module: u32| (qr::MODULES + 2 * QUIET) * module;
    let fits = |module: &u32| side(*module) <= room.width.min(room.height);
    if let Some(module) = (MODULE_MIN..=MODULE_MAX).rev().find(fits) {
        let area = Rectangle::new(grid.cell(column + 7, top), Size::new_equal(side(module)));
        qr::draw(&mut grid.sheet, area, module, (link, &code), (PAPER, GROUND));
    }
}

fn event_lines(grid: &mut Grid<'_>, row: usize, shown: usize) {
    let view = grid.view;
    let width = grid.columns - 1;
    grid.head(1, row, "EVENTS", width);
    for (at, event) in view.events.iter().take(shown).enumerate() {
        let row = row + 1 + at;
        let ink = if event.warning { BAD } else { INK_2 };
        grid.put(1, row, INK_2, &view.time_of_day(event.at), 5);
        let subject = if event.subject.is_empty() { "this box" } else { &event.subject };
        grid.put(8, row, INK, &fit_name(subject, 14), 14);
        grid.put(23, row, ink, &event.sentence, width - 23);
    }
}
