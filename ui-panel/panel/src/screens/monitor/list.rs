//! F2 and F4: machines, history of a machine, and log.

use status::plain;
use status::view::Machine;

use super::Grid;
use crate::draw::palette::{self, BAD, INK, INK_2, RAISED, RUN};
use crate::draw::text::{fit_name, wrap};

/// First row under the heading.
const TOP: usize = 4;

/// Column of the table: heading, width, and function that returns the content.
type Column = (&'static str, usize, fn(&Machine, &Grid<'_>) -> String);

const TABLE: [Column; 7] = [
    ("NAME", 18, |it, _| fit_name(&it.name, 17)),
    ("STATE", 17, |it, _| it.status()),
    ("IP", 16, |it, _| it.ip.to_string()),
    ("MAC", 19, |it, _| it.mac.map_or(String::new(), |mac| mac.to_string())),
    ("POWER", 9, |it, _| it.power.word().to_owned()),
    ("WORKFLOW", 16, |it, _| it.workflow.to_string()),
    ("LAST SEEN", 12, |it, grid| it.last_seen.map_or(String::new(), |at| grid.view.ago(at))),
];

pub fn machines(grid: &mut Grid<'_>) {
    let console = grid.console;
    let machines = console.machines(grid.view);
    let title = match (console.typing, console.filter.as_str()) {
        (false, "") => format!("{} machines", machines.len()),
        (true, filter) => format!("Filter: {filter}_"),
        (false, filter) => {
            format!("{} of {} machines with “{filter}”", machines.len(), grid.view.machines.len())
        }
    };
    let note = "Enter = history   / = filter   r = retry";
    grid.put(1, 2, INK, &title, grid.columns - note.len() - 4);
    grid.put(grid.columns - note.len() - 1, 2, INK_2, note, note.len());
    let mut column = 3;
    for (heading, width, _) in TABLE {
        if column + width <= grid.columns {
            grid.head(column, TOP - 1, heading, width);
        }
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
    let room = grid.bottom() - TOP;
    let first = (at.unwrap_or(0) + 1).saturating_sub(room);
    for (place, machine) in machines.iter().enumerate().skip(first).take(room) {
        line(grid, TOP + place - first, machine, Some(place) == at);
    }
}

fn line(grid: &mut Grid<'_>, row: usize, machine: &Machine, chosen: bool) {
    if chosen {
        grid.ground(row, RAISED);
        grid.put(0, row, RUN, ">", 1);
    }
    grid.sign(1, row, machine.state.shape(), machine.tone());
    let mut column = 3;
    for (at, (_, width, text)) in TABLE.iter().enumerate() {
        if column + width > grid.columns {
            break;
        }
        let color = match at {
            1 => palette::of(machine.tone()),
            0 | 2 => INK,
            _ => INK_2,
        };
        let text = text(machine, grid);
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
        for line in wrap(&trouble.sentence(), width - 2, 4) {
            grid.put(3, row, BAD, &line, width - 2);
            row += 1;
        }
        row += 1;
    }
    grid.head(3, row, "STORY", width);
    row += 1;
    let room = grid.bottom().saturating_sub(row + 1);
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
