//! Layout for 320×240 pixels in color: a header, seven rows, and the labels of the buttons.

mod boot;
mod claim;
mod home;
mod machine;
mod network;
mod problem;
mod questions;
mod rack;
mod system;

use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15, FONT_9X18_BOLD};
use embedded_graphics::pixelcolor::Rgb565;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::{PrimitiveStyleBuilder, Rectangle, StrokeAlignment};
use status::view::StatusView;
use status::view::health::health;

use crate::draw::palette::{BORDER, GROUND, HAIRLINE, INK, INK_2};
use crate::draw::text::{fit, fit_name};
use crate::draw::{Sheet, palette, shape};
use crate::model::{Buttons, Page, ScreenInput};

/// Width of the display in pixels.
pub const WIDTH: u32 = 320;
/// Height of the display in pixels.
pub const HEIGHT: u32 = 240;
/// Width of a transcript column in pixels.
pub const COLUMN_PIXELS: u32 = 9;

/// Left and right margin in pixels.
const MARGIN: i32 = 8;
/// Number of columns between the margins: of FONT_9X15, and of FONT_6X10.
const COLUMNS: usize = 33;
const SMALL_COLUMNS: usize = 50;
/// Height of the header in pixels.
const HEADER: i32 = 28;
/// Top of the body, and height of its rows, in pixels.
const BODY: i32 = 32;
const ROW: i32 = 26;
/// Top of the footer in pixels.
const FOOTER: i32 = 216;

/// Sheet of the screen, with the data to draw.
struct Frame<'a> {
    sheet: Sheet<Rgb565>,
    view: &'a StatusView,
    shown: &'a ScreenInput,
}

/// Draws a page as a picture.
pub fn draw(view: &StatusView, shown: &ScreenInput) -> Sheet<Rgb565> {
    let sheet = Sheet::new(Size::new(WIDTH, HEIGHT), GROUND);
    let mut frame = Frame { sheet, view, shown };
    frame.header();
    match &shown.page {
        Page::Boot => boot::draw(&mut frame),
        Page::Claim | Page::Secret => claim::draw(&mut frame),
        Page::Home => home::draw(&mut frame),
        Page::Rack(at) => rack::draw(&mut frame, *at),
        Page::Installing => rack::draw(&mut frame, 0),
        Page::Problem(key) => problem::draw(&mut frame, key),
        Page::Details(key, line) => problem::details(&mut frame, key, *line),
        Page::Machine(name) => machine::draw(&mut frame, name),
        Page::Network => network::draw(&mut frame),
        Page::Images => system::images(&mut frame),
        Page::System => system::draw(&mut frame),
        Page::Update => system::update(&mut frame),
        Page::Menu(at) => questions::menu(&mut frame, *at),
        Page::Actions(name, at) => questions::actions(&mut frame, name, *at),
        Page::Confirm(order) => questions::confirm(&mut frame, order),
        Page::Outcome(reason) => questions::outcome(&mut frame, reason),
        Page::Reset => questions::reset(&mut frame),
        Page::Erase => questions::erase(&mut frame),
    }
    let mut sheet = frame.sheet;
    let dot = Point::new((shown.dot % WIDTH) as i32, HEIGHT as i32 - 1);
    if let Some(pixel) = sheet.pixel(dot) {
        *pixel = INK;
    }
    sheet
}

impl Frame<'_> {
    /// Draws the header: name, time and health of the box.
    fn header(&mut self) {
        let view = self.view;
        let name = fit_name(&view.name, 22);
        self.sheet.write(Point::new(MARGIN, 5), &FONT_9X18_BOLD, INK, &name);
        let right = match view.starting() {
            Some(_) => fit(&format!("v{}", view.version), 7),
            None => view.time_of_day(view.now),
        };
        let x = 286 - 9 * right.chars().count() as i32;
        self.sheet.write(Point::new(x, 6), &FONT_9X15, INK_2, &right);
        let (word, sign) = health(view);
        let at = Point::new(WIDTH as i32 - MARGIN - 16, 6);
        shape::draw(&mut self.sheet, at, 16, sign, palette::of(word.tone));
        self.rule(HEADER);
    }

    /// Draws a horizontal line.
    fn rule(&mut self, y: i32) {
        self.sheet.fill(Rectangle::new(Point::new(0, y), Size::new(WIDTH, 1)), HAIRLINE);
    }

    /// Draws the labels of the buttons select, up and down, and the position in the page order.
    fn footer(&mut self, labels: [&str; 3]) {
        self.rule(FOOTER);
        let labels = match self.shown.buttons {
            Buttons::Three => labels,
            Buttons::One => ["", labels[2], labels[0]],
            Buttons::None => ["", "", ""],
        };
        for (at, label) in labels.iter().enumerate() {
            let label = match (self.shown.buttons, at, label.is_empty()) {
                (Buttons::One, 2, false) => format!("hold: {label}"),
                _ => (*label).to_owned(),
            };
            let label = fit(&label, 12);
            let middle = 53 + 90 * at as i32;
            let x = middle - 6 * label.chars().count() as i32 / 2;
            self.sheet.write(Point::new(x.max(2), FOOTER + 8), &FONT_6X10, INK_2, &label);
        }
        self.dots();
    }

    /// Draws one dot for each page of the page order; the dot of the current page is filled.
    fn dots(&mut self) {
        let round = Page::round(self.shown.kind, self.view).len() as i32;
        let Some(place) = self.shown.page.place(self.shown.kind, self.view) else { return };
        for dot in 0..round {
            let at = Point::new(WIDTH as i32 - MARGIN - 6 * (round - dot), FOOTER + 10);
            let here = dot == place as i32;
            let size = Size::new_equal(if here { 4 } else { 2 });
            let corner = if here { at } else { at + Point::new(1, 1) };
            self.sheet.fill(Rectangle::new(corner, size), if here { INK } else { BORDER });
        }
        let area = Rectangle::new(Point::new(290, FOOTER + 8), Size::new(22, 8));
        self.sheet.note(area, super::number(self.view, self.shown));
    }

    /// Writes a line of text into a row.
    fn row(&mut self, row: i32, color: Rgb565, text: &str) {
        self.text(Point::new(MARGIN, row_y(row)), &FONT_9X15, color, text, COLUMNS);
    }

    /// Writes text, cut to at most `columns` characters.
    fn text(&mut self, at: Point, font: &MonoFont<'_>, color: Rgb565, text: &str, columns: usize) {
        self.sheet.write(at, font, color, &fit(text, columns));
    }

    /// Writes text that ends at the right margin. Returns the number of columns used.
    fn right(&mut self, y: i32, color: Rgb565, text: &str, columns: usize) -> usize {
        let text = fit(text, columns);
        let taken = text.chars().count();
        let x = WIDTH as i32 - MARGIN - 9 * taken as i32;
        self.sheet.write(Point::new(x, y), &FONT_9X15, color, &text);
        taken
    }

    /// Writes a line with text at both ends; `left` is cut if necessary.
    fn ends(&mut self, y: i32, color: Rgb565, left: &str, right: &str) {
        let taken = self.right(y, color, right, COLUMNS);
        let room = COLUMNS.saturating_sub(taken + 1);
        self.text(Point::new(MARGIN, y), &FONT_9X15, color, left, room);
    }

    /// Draws the outline of a rectangle.
    fn edge(&mut self, area: Rectangle, color: Rgb565, width: u32) {
        let style = PrimitiveStyleBuilder::new()
            .stroke_color(color)
            .stroke_width(width)
            .stroke_alignment(StrokeAlignment::Inside)
            .build();
        self.sheet.stroke(&area, style);
    }
}

/// Returns the top of the text in a row of the body, in pixels.
fn row_y(row: i32) -> i32 {
    BODY + ROW * row + 5
}
