//! Claim page of an unclaimed box, and page with the pin on request.

use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_7X13, FONT_9X15, FONT_10X20};
use embedded_graphics::pixelcolor::Rgb565;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::Claim;

use super::{FOOTER, Frame, MARGIN, SMALL_COLUMNS};
use crate::draw::palette::{GROUND, INK, INK_2, PAPER, WAIT};
use crate::draw::text::wrap;
use crate::draw::{Sheet, plug, qr};
use crate::screens::{pin_lines, waiting};

/// Width of a module of the QR code, and side of the light square around the code, in pixels.
const MODULE: u32 = 5;
const PAPER_SIDE: u32 = 185;
/// Left edge in pixels of the text beside the code, and its width in columns of FONT_7X13.
const RIGHT: i32 = 203;
const COLUMNS: usize = 16;

pub fn draw(frame: &mut Frame<'_>) {
    let view = frame.view;
    let pin = pin_lines(&view.pin);
    let Some(claim) = &view.claim else {
        frame.row(0, INK_2, "Pin of this box's certificate");
        for (at, line) in pin.iter().enumerate() {
            let at = Point::new(MARGIN, 70 + 24 * at as i32);
            frame.text(at, &FONT_10X20, INK, line, 24);
        }
        return frame.footer(["Back", "", ""]);
    };
    left(&mut frame.sheet, claim);
    let mut write = |y, font, color, text: &str, columns| {
        frame.text(Point::new(RIGHT, y), font, color, text, columns);
    };
    match claim.address() {
        Some(address) => {
            write(38, &FONT_7X13, INK_2, "Scan or open", COLUMNS);
            for (at, line) in wrap(address, COLUMNS, 2).iter().enumerate() {
                write(54 + 14 * at as i32, &FONT_7X13, INK, line, COLUMNS);
            }
            write(92, &FONT_7X13, INK_2, "Code", COLUMNS);
            write(106, &FONT_10X20, INK, &claim.code, 11);
        }
        None => {
            for (at, line) in wrap(&waiting(view), COLUMNS, 6).iter().enumerate() {
                write(38 + 15 * at as i32, &FONT_7X13, WAIT, line, COLUMNS);
            }
        }
    }
    write(142, &FONT_7X13, INK_2, "Pin", COLUMNS);
    write(158, &FONT_9X15, INK, &pin[0], 12);
    write(176, &FONT_9X15, INK, &pin[1], 12);
    let used = claim.tries_max.saturating_sub(claim.tries_left);
    let tries = format!("waiting for you · {used} of {} tries", claim.tries_max);
    frame.footer(["", "", ""]);
    frame.text(Point::new(MARGIN, FOOTER + 8), &FONT_6X10, INK_2, &tries, SMALL_COLUMNS - 10);
}

fn left(sheet: &mut Sheet<Rgb565>, claim: &Claim) {
    let area = Rectangle::new(Point::new(MARGIN, 30), Size::new_equal(PAPER_SIDE));
    let link = claim.link();
    if let Some((link, code)) = link.as_deref().and_then(|link| Some((link, qr::encode(link)?))) {
        return qr::draw(sheet, area, MODULE, (link, &code), (PAPER, GROUND));
    }
    plug::draw(sheet, Point::new(64, 50), 3, (INK_2, GROUND));
}
