//! Page with the networks of the box.

use api::network::Mode;
use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15};
use embedded_graphics::prelude::Point;
use status::view::Nic;
use status::words::Shape;

use super::{COLUMNS, Frame, MARGIN, SMALL_COLUMNS};
use crate::draw::palette::{BAD, INK, INK_2, OK};
use crate::draw::shape;

/// Maximum number of interfaces on the page, and their distance in pixels.
const NICS: usize = 3;
const STEP: i32 = 38;
const TOP: i32 = 38;

pub fn draw(frame: &mut Frame<'_>) {
    let view = frame.view;
    for (at, nic) in view.nics.iter().take(NICS).enumerate() {
        interface(frame, nic, TOP + STEP * at as i32);
    }
    let foreign = view.nics.iter().flat_map(|nic| nic.foreign.iter().map(move |it| (nic, it)));
    let (text, ink) = match foreign.clone().next() {
        None => ("Other DHCP servers: none".to_owned(), INK_2),
        Some((nic, by)) => (format!("Other DHCP: {} on {}", by.address, nic.name), BAD),
    };
    frame.text(Point::new(MARGIN, 168), &FONT_9X15, ink, &text, COLUMNS);
    let probed = view.nics.iter().filter_map(|nic| nic.probed).max();
    let text = match probed {
        Some(at) => format!("Last looked for {}", view.ago(at)),
        None => "Not looked for yet".to_owned(),
    };
    frame.text(Point::new(MARGIN, 190), &FONT_9X15, INK_2, &text, COLUMNS);
    frame.footer(["Home", "Back", "Next"]);
}

fn interface(frame: &mut Frame<'_>, nic: &Nic, y: i32) {
    let (sign, color) = match (nic.armed(), nic.stopped()) {
        (_, true) => (Shape::Cross, BAD),
        (true, _) => (Shape::FilledDot, OK),
        (false, _) => (Shape::Ring, INK_2),
    };
    shape::draw(&mut frame.sheet, Point::new(MARGIN, y), 14, sign, color);
    let address = if nic.address.is_empty() { "no address" } else { &nic.address };
    let text = format!("{} {address}", nic.name);
    frame.text(Point::new(MARGIN + 24, y), &FONT_9X15, INK, &text, COLUMNS - 3);
    let mut text = format!("{} · {}", nic.link(), nic.role.word());
    text.push_str(&match (nic.mode, nic.armed_since) {
        (Mode::Off, _) => " · answers nothing".to_owned(),
        (mode, Some(since)) => format!(" · {mode} {}", frame.view.since(since)),
        (mode, None) => format!(" · {mode}, not armed"),
    });
    let at = Point::new(MARGIN + 24, y + 17);
    frame.text(at, &FONT_6X10, INK_2, &text, SMALL_COLUMNS - 4);
}
