//! Summary of the box's health.

use embedded_graphics::mono_font::iso_8859_1::{FONT_5X8, FONT_6X10, FONT_9X15, FONT_10X20};
use embedded_graphics::pixelcolor::Rgb565;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::headline;
use status::words::Shape;

use super::{COLUMNS, Frame, MARGIN, SMALL_COLUMNS};
use crate::draw::palette::{BAD, HAIRLINE, INK, INK_2, OK, RUN};
use crate::draw::text::{fit, wrap};
use crate::draw::{bar, shape};
use crate::screens::Tally;

/// Size of a tile in pixels.
const TILE: Size = Size::new(72, 48);
const TILE_STEP: i32 = 77;
const TILES_TOP: i32 = 74;
/// Area of the traffic chart of the last minutes.
const CHART: Rectangle = Rectangle::new(Point::new(10, 156), Size::new(300, 28));
/// Width of a sample in the chart, in pixels.
const SAMPLE: u32 = 5;

pub fn draw(frame: &mut Frame<'_>) {
    let view = frame.view;
    for (at, line) in wrap(&headline(view).short(), COLUMNS, 2).iter().enumerate() {
        let at = Point::new(MARGIN, 34 + 18 * at as i32);
        frame.text(at, &FONT_9X15, INK, line, COLUMNS);
    }
    let tally = Tally::of(view);
    let tiles = [
        (Shape::Tick, OK, tally.in_service, "In service"),
        (Shape::FilledDot, OK, tally.ready, "Ready"),
        (Shape::Arc, RUN, tally.installing, "Installing"),
        (Shape::Cross, BAD, tally.failed, "Failed"),
    ];
    for (at, (sign, color, number, word)) in tiles.into_iter().enumerate() {
        let corner = Point::new(MARGIN + TILE_STEP * at as i32, TILES_TOP);
        tile(frame, corner, (sign, color), (number, word));
    }
    let power = format!("{} of {} on", view.powered_on(), view.machines.len());
    let dhcp = match view.nics.iter().find(|nic| nic.armed()) {
        Some(nic) => format!("{} {} · {power}", nic.name, nic.mode),
        None => format!("no port is served · {power}"),
    };
    frame.text(Point::new(MARGIN, 130), &FONT_9X15, INK_2, &dhcp, COLUMNS);
    chart(frame);
    let address = match view.address() {
        Some((nic, address)) => format!("{address} {}", nic.name),
        None => "no address".to_owned(),
    };
    frame.ends(192, INK, &address, &fit(&format!("v{}", view.version), 12));
    frame.footer(["Problem", "Back", "Next"]);
}

fn tile(
    frame: &mut Frame<'_>,
    corner: Point,
    (sign, color): (Shape, Rgb565),
    (number, word): (usize, &str),
) {
    frame.edge(Rectangle::new(corner, TILE), HAIRLINE, 1);
    shape::draw(&mut frame.sheet, corner + Point::new(7, 9), 15, sign, color);
    let number = number.min(999).to_string();
    let x = TILE.width as i32 - 7 - 10 * number.chars().count() as i32;
    frame.text(corner + Point::new(x, 6), &FONT_10X20, INK, &number, 3);
    frame.text(corner + Point::new(6, 32), &FONT_6X10, INK_2, word, 10);
}

/// Draws bytes sent to booting machines: one bar for each sample, the newest on the right.
fn chart(frame: &mut Frame<'_>) {
    let samples = &frame.view.boot_traffic;
    let room = (CHART.size.width / SAMPLE) as usize;
    let shown = &samples[samples.len().saturating_sub(room)..];
    let most = shown.iter().copied().max().unwrap_or(0);
    for (at, bytes) in shown.iter().enumerate() {
        let height = bar::cells(*bytes, most.max(1), u64::from(CHART.size.height - 1)) as u32;
        let left = CHART.size.width - SAMPLE * (shown.len() - at) as u32;
        let top = CHART.size.height - 1 - height;
        let at = CHART.top_left + Point::new(left as i32, top as i32);
        frame.sheet.fill(Rectangle::new(at, Size::new(SAMPLE - 1, height)), RUN);
    }
    let ground = CHART.top_left + Point::new(0, CHART.size.height as i32 - 1);
    frame.sheet.fill(Rectangle::new(ground, Size::new(CHART.size.width, 1)), HAIRLINE);
    let label = format!("boot traffic, at most {}/s", stdx::bytes(most));
    frame.text(Point::new(MARGIN, 146), &FONT_5X8, INK_2, &label, SMALL_COLUMNS);
}
