//! Layout for a monitor of at least 800×600 pixels: a grid of FONT_9X18 with a header, the content
//! of the tab, and the function keys.

mod facts;
mod list;
mod now;

use std::time::Duration;

use embedded_graphics::mono_font::iso_8859_1::{FONT_9X18, FONT_9X18_BOLD};
use embedded_graphics::pixelcolor::Rgb565;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::reset::ErasureSummary;
use status::view::health::health;
use status::view::{StatusView, TimeState, moment, problems};
use status::words::{Shape, Tone};

use crate::console::{Console, ErasePrompt, LEAVING, TABS, Tab};
use crate::draw::palette::{BAD, GROUND, INK, INK_2, RAISED, RUN, WAIT};
use crate::draw::text::fit;
use crate::draw::{Sheet, palette, shape};
use crate::model::Action;

/// Monitor size of the golden pictures.
pub const SIZE: Size = Size::new(1024, 768);
/// Minimum size for the whole layout.
pub const SIZE_MIN: Size = Size::new(800, 600);
/// Size of a cell in pixels.
pub const CELL: Size = Size::new(9, 18);

/// Function keys of actions, shown if the action is allowed.
const FUNCTIONS: [(Action, &str, &str); 2] =
    [(Action::Support, "F8", "Support"), (Action::Restart, "F12", "Restart…")];

/// Grid of character cells.
struct Grid<'a> {
    sheet: Sheet<Rgb565>,
    columns: usize,
    rows: usize,
    view: &'a StatusView,
    console: &'a Console,
    now: Duration,
}

/// Draws the console for a monitor of `size`, at least [`SIZE_MIN`]. `now`: monotonic clock.
pub fn draw(view: &StatusView, console: &Console, size: Size, now: Duration) -> Sheet<Rgb565> {
    let size = Size::new(size.width.max(SIZE_MIN.width), size.height.max(SIZE_MIN.height));
    let sheet = Sheet::new(size, GROUND);
    let columns = (size.width / CELL.width) as usize;
    let rows = (size.height / CELL.height) as usize;
    let mut grid = Grid { sheet, columns, rows, view, console, now };
    grid.header();
    match console.tab {
        _ if view.starting().is_some() => facts::boot(&mut grid),
        Tab::Now => now::draw(&mut grid),
        Tab::Machines if console.story => list::story(&mut grid),
        Tab::Machines => list::machines(&mut grid),
        Tab::Network => facts::network(&mut grid),
        Tab::Logs => list::log(&mut grid),
        Tab::Box => facts::this_box(&mut grid),
    }
    grid.diagnostics();
    grid.keys();
    let mut sheet = grid.sheet;
    let x = (now.as_secs() % u64::from(size.width)) as i32;
    if let Some(pixel) = sheet.pixel(Point::new(x, size.height as i32 - 1)) {
        *pixel = INK;
    }
    sheet
}

impl Grid<'_> {
    /// Writes text at a cell; a text over `width` columns is cut.
    fn put(&mut self, column: usize, row: usize, color: Rgb565, text: &str, width: usize) {
        let width = width.min(self.columns.saturating_sub(column));
        self.sheet.write(cell(column, row), &FONT_9X18, color, &fit(text, width));
    }

    /// Draws a heading into a row.
    fn head(&mut self, column: usize, row: usize, text: &str, width: usize) {
        let width = width.min(self.columns.saturating_sub(column));
        self.sheet.write(cell(column, row), &FONT_9X18_BOLD, INK_2, &fit(text, width));
    }

    /// Draws a shape, one and a half cells wide.
    fn sign(&mut self, column: usize, row: usize, sign: Shape, tone: Tone) {
        let at = cell(column, row) + Point::new(0, 2);
        shape::draw(&mut self.sheet, at, 13, sign, palette::of(tone));
    }

    /// Fills a row with a color.
    fn ground(&mut self, row: usize, color: Rgb565) {
        let size = Size::new(self.columns as u32 * CELL.width, CELL.height);
        let size = Size::new(size.width.max(self.width()), size.height);
        self.sheet.fill(Rectangle::new(cell(0, row), size), color);
    }

    fn width(&self) -> u32 {
        use embedded_graphics::prelude::OriginDimensions;
        self.sheet.size().width
    }

    /// Returns the first row of the bottom area, which contains diagnostics and keys.
    fn bottom(&self) -> usize {
        self.rows - 2
    }

    fn header(&mut self) {
        let view = self.view;
        self.ground(0, RAISED);
        let (word, sign) = health(view);
        let time = match view.clock.state {
            TimeState::Synced => view.time_of_day(view.now),
            state => format!("{} ({})", view.time_of_day(view.now), state.word()),
        };
        let right = format!("up {}   {time}   {}", moment::uptime(view.uptime_seconds), word.text);
        let taken = right.chars().count();
        let left = format!("{}   v{}   slot {}", view.name, view.version, view.slot);
        self.put(1, 0, INK, &left, self.columns.saturating_sub(taken + 6));
        self.put(self.columns - taken - 3, 0, INK, &right, taken);
        self.sign(self.columns - 2, 0, sign, word.tone);
    }

    /// Draws the most urgent problem, if any, or the explanation of an open prompt, in one line.
    fn diagnostics(&mut self) {
        let row = self.bottom();
        if let Some(more) = self.question_above() {
            return self.put(1, row, WAIT, &more, self.columns - 2);
        }
        let Some(problem) = problems(self.view).into_iter().next() else { return };
        let trouble = &problem.trouble;
        let mut text = trouble.sentence();
        if !trouble.code.is_empty() {
            text = format!("{} — {text} — /help/errors/{}", trouble.code, trouble.code);
        }
        let square = Rectangle::new(cell(1, row) + Point::new(0, 4), Size::new_equal(9));
        self.sheet.fill(square, BAD);
        self.sheet.note(square, "■".to_owned());
        self.put(3, row, INK, &text, self.columns - 4);
    }

    /// Returns the open prompt before a factory reset, with the seconds until it closes.
    fn erasing(&self) -> Option<(&ErasePrompt, u64)> {
        let erasing = self.console.erasing.as_ref()?;
        Some((erasing, erasing.seconds(self.now)?))
    }

    /// Returns the action of the open prompt; `None` without an open prompt.
    fn asking(&self) -> Option<Action> {
        self.console.asking?.action(self.now)
    }

    /// Returns the text above an open prompt; `None` without an open prompt.
    fn question_above(&self) -> Option<String> {
        if self.erasing().is_some() {
            let erased = ErasureSummary::of(self.view).sentence();
            return Some(format!("FACTORY RESET erases {erased}. The systems in both slots stay."));
        }
        let asked = self.asking()?;
        let other = LEAVING
            .into_iter()
            .filter(|(_, action)| *action != asked && self.console.actions.contains(action));
        let other: Vec<String> = other
            .map(|(key, action)| format!("{} {}", key.to_ascii_uppercase(), action.label()))
            .collect();
        (!other.is_empty()).then(|| format!("or: {}", other.join("   ")))
    }

    /// Draws the function keys, or the open prompt.
    fn keys(&mut self) {
        let row = self.rows - 1;
        self.ground(row, RAISED);
        if let Some((erasing, seconds)) = self.erasing() {
            let (name, typed) = (&self.view.name, &erasing.typed);
            let text =
                format!("Type {name} and Enter: ERASE   or wait {seconds} s: no   > {typed}_");
            return self.put(1, row, BAD, &text, self.columns - 2);
        }
        if let Some(action) = self.asking() {
            let text = format!(
                "{}? {}.   Enter = yes   any other key = no",
                action.label(),
                action.effect()
            );
            return self.put(1, row, WAIT, &text, self.columns - 2);
        }
        let mut column = 1;
        for (key, tab, name) in TABS {
            let color = if tab == self.console.tab { RUN } else { INK };
            column = self.hint(column, &format!("F{key}"), name, color);
        }
        for (action, key, name) in FUNCTIONS {
            if self.console.actions.contains(&action) {
                column = self.hint(column, key, name, INK);
            }
        }
    }

    fn hint(&mut self, column: usize, key: &str, name: &str, color: Rgb565) -> usize {
        let row = self.rows - 1;
        self.put(column, row, INK_2, key, key.len());
        let at = column + key.len() + 1;
        self.put(at, row, color, name, 9);
        at + name.chars().count() + 2
    }
}

/// Returns the upper left corner of a cell, in pixels.
fn cell(column: usize, row: usize) -> Point {
    Point::new(column as i32 * CELL.width as i32, row as i32 * CELL.height as i32)
}
