//! Pages of the system, the image cache and the update.

use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15, FONT_9X18_BOLD};
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::image::ImageState;
use status::view::{UpdateState, moment, system::percent};

use super::{COLUMNS, Frame, MARGIN, ROW, SMALL_COLUMNS, row_y};
use crate::draw::bar;
use crate::draw::palette::{BAD, BORDER, INK, INK_2, RUN, WAIT};
use crate::draw::text::wrap;
use crate::screens::{update_step, version};

/// Use in percent from which a bar has the warning color.
const MUCH: u8 = 85;
/// Maximum number of files on one page.
const FILES: usize = 4;

pub fn draw(frame: &mut Frame<'_>) {
    let view = frame.view;
    let system = &view.system;
    let up = format!("up {}", moment::uptime(view.uptime_seconds));
    frame.ends(row_y(0), INK, &version(view), &up);
    let update = match &view.update {
        Some(update) => format!("{}: {}", update.version, update_step(update)),
        None => "Up to date".to_owned(),
    };
    frame.row(1, INK_2, &update);
    let cpu = system.cpu_percent.unwrap_or(0).min(100);
    gauge(frame, 2, "CPU", cpu, &system.cpu_percent.map_or("?".to_owned(), |it| format!("{it}%")));
    let ram = format!("{}/{}", moment::bytes(system.ram_used), moment::bytes(system.ram_total));
    gauge(frame, 3, "RAM", system.ram_percent(), &ram);
    let disk = format!("{}/{}", moment::bytes(system.disk_used), moment::bytes(system.disk_total));
    gauge(frame, 4, "Disk", system.disk_percent(), &disk);
    let heat = system.temperature.map_or("no sensor".to_owned(), |it| format!("{it} °C"));
    let flash = system.flash_life_percent.map_or(String::new(), |it| format!("flash {it}% used"));
    frame.ends(row_y(5), INK_2, &heat, &flash);
    let backup = match system.backup_at {
        Some(at) => format!("backup {}", view.ago(at)),
        None => "no backup yet".to_owned(),
    };
    let time = format!("time {}", view.clock.state.word());
    frame.ends(row_y(6), INK_2, &time, &backup);
    frame.footer(["Home", "Back", "Next"]);
}

fn gauge(frame: &mut Frame<'_>, row: i32, name: &str, percent: u8, figure: &str) {
    let y = row_y(row);
    frame.text(Point::new(MARGIN, y), &FONT_9X15, INK_2, name, 4);
    let area = Rectangle::new(Point::new(MARGIN + 45, y + 1), Size::new(150, 13));
    let color = if percent >= MUCH { WAIT } else { RUN };
    bar::of_pixels(&mut frame.sheet, area, percent, (BORDER, color));
    frame.right(y, INK, figure, 12);
}

pub fn images(frame: &mut Frame<'_>) {
    let images = &frame.view.images;
    let share = percent(images.used, images.capacity);
    let sizes = format!("{}/{}", moment::bytes(images.used), moment::bytes(images.capacity));
    gauge(frame, 0, "Disk", share, &sizes);
    for (at, image) in images.items.iter().take(FILES).enumerate() {
        let y = row_y(1) + (ROW + 6) * at as i32;
        let name = image.origin.rsplit('/').next().unwrap_or_default();
        let name = if name.is_empty() { image.short_name() } else { name };
        let ink = if image.state == ImageState::Failed { BAD } else { INK };
        frame.text(Point::new(MARGIN, y), &FONT_9X15, ink, name, COLUMNS);
        let note = match (image.state, image.stays().as_str()) {
            (ImageState::Ready, "") => moment::bytes(image.size),
            (ImageState::Ready, stays) => format!("{} · {stays}", moment::bytes(image.size)),
            _ => image.line(),
        };
        frame.text(Point::new(MARGIN, y + 16), &FONT_6X10, INK_2, &note, SMALL_COLUMNS);
    }
    if let Some(room) = room(frame) {
        frame.text(Point::new(MARGIN, 197), &FONT_9X15, INK_2, &room, COLUMNS);
    }
    frame.footer(["Home", "Back", "Next"]);
}

/// Estimates how many more images fit into the cache, each of the first image's size.
fn room(frame: &Frame<'_>) -> Option<String> {
    let images = &frame.view.images;
    let size = images.items.iter().map(|image| image.size).find(|size| *size > 0)?;
    let free = images.capacity.saturating_sub(images.used);
    let more = (free / size).min(999);
    Some(format!("fits {more} more images of {}", moment::bytes(size)))
}

pub fn update(frame: &mut Frame<'_>) {
    let view = frame.view;
    let Some(update) = &view.update else {
        frame.row(0, INK, "Up to date");
        frame.row(1, INK_2, &format!("Running v{}", view.version));
        return frame.footer(["Home", "Back", "Next"]);
    };
    let undone = update.state == UpdateState::RolledBack;
    let ink = if undone { BAD } else { INK };
    let title = format!("Update {}", update.version);
    frame.text(Point::new(MARGIN, row_y(0) - 2), &FONT_9X18_BOLD, ink, &title, COLUMNS);
    if let Some(percent) = update.percent {
        let area = Rectangle::new(Point::new(MARGIN, row_y(1)), Size::new(240, 14));
        bar::of_pixels(&mut frame.sheet, area, percent, (BORDER, RUN));
        frame.right(row_y(1), INK, &format!("{}%", percent.min(100)), 4);
    }
    let mut text = vec![update_step(update)];
    if undone {
        text.push(format!("{} did not start: {}.", update.version, update.reason));
        text.push(format!("This box is back on {}.", view.version));
    } else if update.state.under_way() {
        text.push("Machines keep running. Do not worry about the power.".to_owned());
    }
    let waits: Vec<&str> = update.waits_for.iter().map(|name| name.as_str()).collect();
    if !waits.is_empty() {
        text.push(format!("Waits for {}.", waits.join(", ")));
    }
    let lines = text.iter().flat_map(|part| wrap(part, COLUMNS, 3)).take(5);
    for (at, line) in lines.enumerate() {
        let at = Point::new(MARGIN, row_y(2) + 22 * at as i32);
        frame.text(at, &FONT_9X15, INK_2, &line, COLUMNS);
    }
    frame.footer(["Home", "Back", "Next"]);
}
