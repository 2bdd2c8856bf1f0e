//! Claim page: the QR code on the left, the text to type on the right.

use embedded_graphics::mono_font::iso_8859_1::{FONT_5X8, FONT_9X15};
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::{Claim, StatusView};

use super::{HEIGHT, WIDTH};
use crate::draw::text::{fit, wrap};
use crate::draw::{Sheet, plug, qr};
use crate::screens::{pin_lines, waiting};

/// Width of a module of the code, in pixels.
const MODULE: u32 = 2;
/// Number of columns and rows of FONT_5X8 beside the code, and the row height in pixels.
const COLUMNS: usize = 12;
const ROWS: usize = 8;
const ROW: i32 = 8;
/// Left edge of the texts, in pixels.
const LEFT: i32 = 66;

pub fn draw(sheet: &mut Sheet<BinaryColor>, view: &StatusView, claim: &Claim) {
    let left = Rectangle::new(Point::zero(), Size::new(WIDTH / 2, HEIGHT));
    let link = claim.link();
    match link.as_deref().and_then(|link| Some((link, qr::encode(link)?))) {
        Some((link, code)) => {
            qr::draw(sheet, left, MODULE, (link, &code), (BinaryColor::On, BinaryColor::Off));
        }
        None => plug::draw(sheet, Point::new(20, 8), 1, (BinaryColor::On, BinaryColor::Off)),
    }
    row(sheet, 0, "CLAIM ME");
    match claim.address() {
        Some(address) => reachable(sheet, view, claim, address),
        None => {
            for (at, line) in wrap(&waiting(view), COLUMNS, ROWS - 2).iter().enumerate() {
                row(sheet, 2 + at, line);
            }
        }
    }
}

fn row(sheet: &mut Sheet<BinaryColor>, at: usize, text: &str) {
    let y = i32::try_from(at).unwrap_or(0) * ROW;
    sheet.write(Point::new(LEFT, y), &FONT_5X8, BinaryColor::On, &fit(text, COLUMNS));
}

fn reachable(sheet: &mut Sheet<BinaryColor>, view: &StatusView, claim: &Claim, address: &str) {
    let lines = wrap(address, COLUMNS, 2);
    for (at, line) in lines.iter().enumerate() {
        row(sheet, 1 + at, line);
    }
    let mut at = 1 + lines.len();
    row(sheet, at, "code");
    at += 1;
    if lines.len() < 2 {
        let y = i32::try_from(at).unwrap_or(0) * ROW;
        let code = fit(&claim.code, 6);
        sheet.write(Point::new(LEFT, y), &FONT_9X15, BinaryColor::On, &code);
        at += 2;
    } else {
        row(sheet, at, &claim.code);
        at += 1;
    }
    row(sheet, at, "pin");
    for (below, line) in pin_lines(&view.pin).iter().enumerate() {
        row(sheet, at + 1 + below, line);
    }
}
