//! F2 and F4: machines, history of a machine, and log.

use status::plain;
use status::view::Machine;

use super::Grid;
use crate::draw::palette::{self, BAD, INK, INK_2, RAISED, RUN};
use crate::draw::text::{fit_name, wrap};
use crate::screens::counted;

/// First row under the heading.
const TOP: usize = 4;

/// Maximum number of rows of a machine's failure with its remedy.
const TROUBLE_ROWS: usize = 6;

/// Column of the table: heading, width, and function that returns the content.
type Column = (&'static str, usize, fn(&Machine, &Grid<'_>) -> String);

const TABLE: [Column; 7] = [
    ("NAME", 16, |it, _| it.name.to_string()),
    ("STATE", 17, |it, _| it.status()),
    ("IP", 16, |it, _| it.ip.to_string()),
    ("MAC", 18, |it, _| it.mac.map_or(String::new(), |mac| mac.to_string())),
    ("POWER", 8, |it, _| it.power.word().to_owned()),
    ("WORKFLOW", 13, |it, _| it.workflow.to_string()),
    ("LAST SEEN", 11, |it, grid| it.last_seen.map_or(String::new(), |at| grid.view.ago(at))),
];
/// Maximum width of the names, on a monitor with space.
const NAME_MAX: usize = 40;

/// Returns the columns that fit, with their widths. Names get the space that is left.
fn columns(grid: &Grid<'_>) -> Vec<Column> {
    let mut left = grid.columns.saturating_sub(3);
    let fits = |column: &Column| {
        left = left.checked_sub(column.1)?;
        Some(*column)
    };
    let mut columns: Vec<Column> = TABLE.iter().map_while(fits).collect();
    if let Some(name) = columns.first_mut() {
        name.1 = (name.1 + left).min(NAME_MAX);
    }
    columns
}

/// Draws the keys of the actions on the machine under the cursor, in the rows above the bottom.
/// Returns the first of these rows.
fn action_keys(grid: &mut Grid<'_>) -> usize {
    let actions = grid.console.machine_actions(grid.view);
    let Some(machine) = grid.console.chosen(grid.view).filter(|_| !actions.is_empty()) else {
        return grid.bottom();
    };
    let width = grid.columns - 4;
    let mut lines = vec![format!("{}:", fit_name(&machine.name, NAME_MAX))];
    for (key, action) in actions {
        let hint = format!("   {key} = {}", action.label());
        match lines.last_mut() {
            Some(line) if line.chars().count() + hint.chars().count() <= width => {
                line.push_str(&hint);
            }
            _ => lines.push(hint),
        }
    }
    let first = grid.bottom().saturating_sub(lines.len());
    for (at, line) in lines.iter().enumerate() {
        grid.put(3, first + at, INK_2, line, width);
    }
    first
}

pub fn machines(grid: &mut Grid<'_>) {
    let console = grid.console;
    let machines = console.machines(grid.view);
    let title = match (console.typing, console.filter.as_str()) {
        (false, "") => counted(machines.len(), "machine"),
        (true, filter) => format!("Filter: {filter}_"),
        (false, filter) => {
            format!("{} of {} machines with “{filter}”", machines.len(), grid.view.machines.len())
        }
    };
    let note = "Enter = history   / = filter";
    grid.put(1, 2, INK, &title, grid.columns - note.len() - 4);
    grid.put(grid.columns - note.len() - 1, 2, INK_2, note, note.len());
    let columns = columns(grid);
    let mut column = 3;
    for (heading, width, _) in &columns {
        grid.head(column, TOP - 1, heading, *width);
        column += width;
    }
    if machines.is_empty() {
        let text = match console.filter.as_str() {
            "" => "No machines yet.".to_owned(),
            filter => format!("No match for ‘{filter}’."),
        };
        return grid.put(3, TOP, INK_2, &text, grid.columns - 4);
    }
    let chosen = console.chosen(grid.view).map(|machine| machine.name.clone());
    let at = machines.iter().position(|machine| Some(&machine.name) == chosen.as_ref());
    let room = (action_keys(grid) - 1).saturating_sub(TOP);
    let first = (at.unwrap_or(0) + 1).saturating_sub(room);
    for (place, machine) in machines.iter().enumerate().skip(first).take(room) {
        line(grid, TOP + place - first, &columns, (machine, Some(place) == at));
    }
}

fn line(grid: &mut Grid<'_>, row: usize, columns: &[Column], (machine, chosen): (&Machine, bool)) {
    if chosen {
        grid.ground(row, RAISED);
        grid.put(0, row, RUN, ">", 1);
    }
    grid.sign(1, row, machine.state.shape(), machine.tone());
    let mut column = 3;
    for (at, (_, width, text)) in columns.iter().enumerate() {
        let color = match at {
            1 => palette::of(machine.tone()),
            0 | 2 => INK,
            _ => INK_2,
        };
        let text = match at {
            0 => fit_name(&machine.name, width - 1),
            _ => text(machine, grid),
        };
        grid.put(column, row, color, &text, width - 1);
        column += width;
    }
}

pub fn story(grid: &mut Grid<'_>) {
    let width = grid.columns - 2;
    let Some(machine) = grid.console.chosen(grid.view) else {
        return grid.put(1, 2, INK_2, "This machine is gone. Esc = back", width);
    };
    grid.sign(1, 2, machine.state.shape(), machine.tone());
    let name = fit_name(&machine.name, 40);
    let after = 3 + name.chars().count() + 2;
    grid.put(3, 2, INK, &name, 40);
    grid.put(after, 2, palette::of(machine.tone()), &machine.status(), 20);
    let mac = machine.mac.map_or(String::new(), |mac| mac.to_string());
    let facts = [
        machine.ip.as_str(),
        &mac,
        &format!("power {}", machine.power.word()),
        &machine.workflow,
        &machine.step,
    ];
    let facts: Vec<&str> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    grid.put(3, 3, INK_2, &facts.join("   "), width - 2);
    let mut row = 5;
    if let Some(trouble) = &machine.trouble {
        for line in wrap(&trouble.sentence(), width - 2, TROUBLE_ROWS) {
            grid.put(3, row, BAD, &line, width - 2);
            row += 1;
        }
        row += 1;
    }
    grid.head(3, row, "HISTORY", width);
    row += 1;
    let room = action_keys(grid).saturating_sub(row + 1);
    let first = machine.story.len().saturating_sub(room);
    for sentence in &machine.story[first..] {
        let ink = if sentence.warning { BAD } else { INK };
        grid.put(3, row, INK_2, &grid.view.time_of_day(sentence.at), 5);
        grid.put(10, row, ink, &sentence.text, width - 9);
        row += 1;
    }
    if machine.story.is_empty() {
        grid.put(3, row, INK_2, "No report yet.", width);
    }
}

pub fn log(grid: &mut Grid<'_>) {
    let warnings = grid.console.warnings;
    let lines = grid.view.log.iter().filter(|line| !warnings || line.warning());
    let lines: Vec<_> = lines.collect();
    let title = if warnings { "Warnings" } else { "Log" };
    let note = "w = warnings only";
    grid.put(1, 2, INK, title, 20);
    grid.put(grid.columns - note.len() - 1, 2, INK_2, note, note.len());
    let room = grid.bottom() - TOP;
    let first = lines.len().saturating_sub(room);
    for (at, line) in lines[first..].iter().enumerate() {
        let row = TOP + at;
        let ink = if line.warning() { BAD } else { INK };
        grid.put(1, row, INK_2, &grid.view.time_of_day(line.received), 5);
        grid.put(8, row, INK_2, &line.severity, 8);
        grid.put(17, row, INK_2, &fit_name(&line.program, 12), 12);
        grid.put(30, row, ink, &plain(&line.text), grid.columns - 31);
    }
}
