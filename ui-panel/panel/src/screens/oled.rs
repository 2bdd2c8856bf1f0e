//! Layout for 128×64 monochrome pixels: six rows of 21 columns, the first row inverse. The claim
//! page has a QR code on the left.

mod claim;
mod machines;
mod pages;
mod questions;

use embedded_graphics::mono_font::iso_8859_1::FONT_6X10;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::view::StatusView;

use crate::draw::Sheet;
use crate::model::{Page, ScreenInput};

/// Width of the display in pixels.
pub const WIDTH: u32 = 128;
/// Height of the display in pixels.
pub const HEIGHT: u32 = 64;
/// Number of columns in a row.
pub const COLUMNS: usize = 21;
/// Number of text rows.
pub const ROWS: usize = 6;
/// Width of a column of FONT_6X10 in pixels.
pub const COLUMN_PIXELS: u32 = 6;

/// Left edge of the first column in pixels, so that the columns are centered.
const LEFT: i32 = 1;
/// Height of the inverse row in pixels.
const BAR: u32 = 10;
/// Top of the second row, and height of the rows below the inverse row, in pixels.
const BODY: i32 = 12;
const ROW: i32 = 10;

/// Rows of text, none longer than [`COLUMNS`].
type Rows = Vec<String>;

/// Draws a page as a picture.
pub fn draw(view: &StatusView, shown: &ScreenInput) -> Sheet<BinaryColor> {
    let mut sheet = Sheet::new(Size::new(WIDTH, HEIGHT), BinaryColor::Off);
    match (&shown.page, &view.claim) {
        (Page::Claim, Some(wanted)) => claim::draw(&mut sheet, view, wanted),
        _ => write(&mut sheet, &rows(view, shown)),
    }
    let mut sheet = sheet.shifted(Point::new(shown.shift.0, shown.shift.1), BinaryColor::Off);
    walk(&mut sheet, shown);
    sheet
}

/// Returns a page as rows of text.
pub fn rows(view: &StatusView, shown: &ScreenInput) -> Rows {
    let number = super::number(view, shown);
    match &shown.page {
        Page::Boot => pages::boot(view),
        Page::Claim | Page::Secret => pages::secret(view),
        Page::Home => pages::home(view, &number),
        Page::Installing => pages::installing(view, shown, &number),
        Page::Rack(at) => machines::list(view, *at),
        Page::Problem(key) => pages::problem(view, shown, key, &number),
        Page::Details(key, line) => pages::details(view, key, *line),
        Page::Machine(name) => machines::one(view, shown, name),
        Page::Network => pages::network(view, &number),
        Page::Images => pages::images(view, &number),
        Page::System => pages::system(view, &number),
        Page::Update => pages::update(view, &number),
        Page::Menu(at) => questions::menu(shown, *at),
        Page::Actions(name, at) => questions::actions(view, shown, name, *at),
        Page::Confirm(order) => questions::confirm(view, shown, order),
        Page::Outcome(reason) => questions::outcome(reason),
        Page::Reset => questions::reset(shown),
        Page::Erase => questions::erase(view, shown),
    }
}

fn write(sheet: &mut Sheet<BinaryColor>, rows: &Rows) {
    let bar = Rectangle::new(Point::zero(), Size::new(WIDTH, BAR));
    sheet.fill(bar, BinaryColor::On);
    for (at, row) in rows.iter().take(ROWS).enumerate() {
        let below = i32::try_from(at).unwrap_or(0) - 1;
        let (y, color) = match at {
            0 => (0, BinaryColor::Off),
            _ => (BODY + ROW * below, BinaryColor::On),
        };
        sheet.write(Point::new(LEFT, y), &FONT_6X10, color, row);
    }
}

/// Draws one pixel that moves along the bottom edge, so that a frozen screen can be recognized.
fn walk(sheet: &mut Sheet<BinaryColor>, shown: &ScreenInput) {
    // The dot must not enter the quiet zone of the code.
    let from = if shown.page == Page::Claim { WIDTH / 2 } else { 0 };
    let x = from + shown.dot % (WIDTH - from);
    let at = Point::new(i32::try_from(x).unwrap_or(0), i32::try_from(HEIGHT).unwrap_or(1) - 1);
    if let Some(pixel) = sheet.pixel(at) {
        *pixel = BinaryColor::On;
    }
}
