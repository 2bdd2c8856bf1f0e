//! Start page, F3 and F5: lists of facts.

use api::network::Mode;
use embedded_graphics::pixelcolor::Rgb565;
use status::view::system::percent;
use status::view::{BootStep, Nic, moment};
use status::words::{Shape, Tone};

use super::Grid;
use crate::draw::palette::{BAD, INK, INK_2, WAIT};
use crate::draw::text::wrap;
use crate::screens::update_step;

/// Column at which the values begin.
const FACT: usize = 25;
/// Maximum number of rows of a value.
const FACT_ROWS: usize = 3;

impl Grid<'_> {
    /// Draws a name and a value; returns the next row.
    fn fact(&mut self, row: usize, name: &str, color: Rgb565, text: &str) -> usize {
        let room = self.bottom().saturating_sub(row).min(FACT_ROWS);
        let width = self.columns - FACT - 1;
        let lines = wrap(text, width, room);
        if !lines.is_empty() {
            self.put(3, row, INK_2, name, FACT - 4);
        }
        for (at, line) in lines.iter().enumerate() {
            self.put(FACT, row + at, color, line, width);
        }
        row + lines.len()
    }
}

pub fn boot(grid: &mut Grid<'_>) {
    grid.put(1, 2, INK, "Starting", 20);
    let room = grid.bottom() - 4;
    for (at, step) in grid.view.boot.iter().take(room).enumerate() {
        let row = 4 + at;
        let (sign, tone) = match (step.done, step.took_millis) {
            (true, _) => (Shape::Tick, Tone::Good),
            (false, Some(_)) if step.slow() => (Shape::Arc, Tone::Waiting),
            (false, Some(_)) => (Shape::Arc, Tone::Busy),
            (false, None) => (Shape::Minus, Tone::Quiet),
        };
        grid.sign(1, row, sign, tone);
        grid.put(3, row, INK, &step.name, 40);
        grid.put(45, row, INK_2, &took(step), grid.columns - 46);
    }
}

fn took(step: &BootStep) -> String {
    let usual = stdx::seconds(step.usual_millis);
    match step.took_millis {
        None => String::new(),
        Some(_) if step.slow() => format!("taking longer than usual (usually {usual})"),
        Some(took) => format!("{} (usually {usual})", stdx::seconds(took)),
    }
}

pub fn network(grid: &mut Grid<'_>) {
    let mut row = 2;
    for nic in &grid.view.nics {
        if row + 3 >= grid.bottom() {
            return;
        }
        row = interface(grid, nic, row) + 1;
    }
    if grid.view.nics.is_empty() {
        grid.put(1, row, WAIT, "No network port was found.", 40);
    }
}

fn interface(grid: &mut Grid<'_>, nic: &Nic, row: usize) -> usize {
    let view = grid.view;
    let (sign, tone) = match (nic.armed(), nic.stopped()) {
        (_, true) => (Shape::Cross, Tone::Bad),
        (true, _) => (Shape::FilledDot, Tone::Good),
        (false, _) => (Shape::Ring, Tone::Quiet),
    };
    grid.sign(1, row, sign, tone);
    let name = format!("{}  {}", nic.name, nic.role.word());
    grid.put(3, row, INK, &name, grid.columns - 4);
    let mut row = row + 1;
    let mac = nic.mac.map_or(String::new(), |mac| format!(", MAC {mac}"));
    row = grid.fact(row, "Link", INK, &format!("{}{mac}", nic.link()));
    let address = if nic.address.is_empty() { "none" } else { &nic.address };
    row = grid.fact(row, "Address", INK, address);
    let serves = match (nic.mode, nic.armed_since) {
        (Mode::Off, _) => "nothing is answered".to_owned(),
        (mode, Some(since)) => format!("{mode}, armed {}", view.ago(since)),
        (mode, None) => format!("{mode}, not armed"),
    };
    row = grid.fact(row, "DHCP", INK, &serves);
    if !nic.held.is_empty() {
        row = grid.fact(row, "Held", WAIT, &nic.held);
    }
    let probed = nic.probed.map_or("never".to_owned(), |at| view.ago(at));
    row = grid.fact(row, "Last probe", INK_2, &probed);
    for server in nic.foreign.iter().take(3) {
        let vendor = match server.vendor.as_str() {
            "" => String::new(),
            vendor => format!(", made by {vendor}"),
        };
        let mut text = format!("{} ({}{vendor})", server.address, server.mac);
        if !server.offered.is_empty() {
            text.push_str(&format!(", offered {}", server.offered));
        }
        row = grid.fact(row, "Other DHCP server", BAD, &text);
    }
    row
}

pub fn this_box(grid: &mut Grid<'_>) {
    let view = grid.view;
    let system = &view.system;
    let mut row = 2;
    for slot in &system.slots {
        let version = if slot.version.is_empty() { "empty" } else { &slot.version };
        let good = if slot.good { "good" } else { "on trial" };
        let running = if slot.running { ", running" } else { "" };
        row = grid.fact(
            row,
            &format!("Slot {}", slot.name),
            INK,
            &format!("{version}, {good}{running}"),
        );
    }
    let update = match &view.update {
        None => "up to date".to_owned(),
        Some(update) => match update.percent {
            Some(share) => format!("{}: {} {share} %", update.version, update_step(update)),
            None => format!("{}: {}", update.version, update_step(update)),
        },
    };
    row = grid.fact(row, "Update", INK, &update) + 1;
    let source = match view.clock.source.as_str() {
        "" => String::new(),
        source => format!(" by {source}"),
    };
    row = grid.fact(row, "Time", INK, &format!("{}{source}", view.clock.state.word()));
    let share = |used: u64, all: u64| {
        format!("{} of {} ({} %)", stdx::bytes(used), stdx::bytes(all), percent(used, all))
    };
    row = grid.fact(row, "Memory", INK, &share(system.ram_used, system.ram_total));
    row = grid.fact(row, "Settings disk", INK, &share(system.disk_used, system.disk_total));
    row = grid.fact(row, "Cache", INK, &share(view.images.used, view.images.capacity));
    let unknown = || "unknown".to_owned();
    let cpu = system.cpu_percent.map_or_else(unknown, |it| format!("{it} %"));
    row = grid.fact(row, "Processor", INK, &cpu);
    let heat = system.temperature.map_or_else(unknown, |it| format!("{it} °C"));
    row = grid.fact(row, "Temperature", INK, &heat);
    let flash =
        system.flash_life_percent.map_or_else(unknown, |it| format!("{it} % of its life used"));
    row = grid.fact(row, "Flash memory", INK, &flash) + 1;
    for (at, line) in wrap(&system.certificate_sha256, 64, 2).iter().enumerate() {
        row = grid.fact(row, if at == 0 { "Certificate SHA-256" } else { "" }, INK, line);
    }
    row = grid.fact(row, "Accounts", INK, &system.accounts.to_string());
    let backup = system.backup_at.map_or("none yet".to_owned(), |at| view.ago(at));
    row = grid.fact(row, "Last backup", INK, &backup);
    grid.fact(row, "Up", INK, &moment::uptime(view.uptime_seconds));
}
