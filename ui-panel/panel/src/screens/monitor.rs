//! Layout for a monitor of at least 800×600 pixels: a grid of characters with a header, the content
//! of the tab, and the function keys. The characters are as large as the grid permits.

mod facts;
mod glyphs;
mod list;
mod now;

use std::time::Duration;

use embedded_graphics::pixelcolor::Rgb565;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use status::reset::ErasureSummary;
use status::view::health::health;
use status::view::{StatusView, TimeState, moment, problems};
use status::words::{Shape, Tone};

use crate::console::{Console, LEAVING, Outcome, Prompt, TABS, Tab};
use crate::draw::palette::{BAD, GROUND, INK, INK_2, RAISED, RUN, WAIT};
use crate::draw::text::{fit, wrap};
use crate::draw::{Sheet, palette, shape};
use crate::model::{Action, PanelOrder};
use crate::screens::Question;
use glyphs::Glyphs;

pub use glyphs::cell_width;

/// Monitor size of the golden pictures.
pub const SIZE: Size = Size::new(1024, 768);
/// Minimum size for the whole layout.
pub const SIZE_MIN: Size = Size::new(800, 600);
/// Maximum number of lines between the content and the function keys.
const NOTES_MAX: usize = 3;

/// Grid of character cells.
struct Grid<'a> {
    sheet: Sheet<Rgb565>,
    glyphs: Glyphs,
    columns: usize,
    rows: usize,
    view: &'a StatusView,
    console: &'a Console,
    now: Duration,
    /// Lines between the content and the function keys: a prompt, an outcome, or a problem.
    notes: Vec<String>,
}

/// Draws the console for a monitor of `size`, at least [`SIZE_MIN`]. `now`: monotonic clock.
pub fn draw(view: &StatusView, console: &Console, size: Size, now: Duration) -> Sheet<Rgb565> {
    let size = Size::new(size.width.max(SIZE_MIN.width), size.height.max(SIZE_MIN.height));
    let glyphs = Glyphs::of(size);
    let sheet = Sheet::new(size / glyphs.scale, GROUND);
    let (columns, rows) = glyphs.grid(size);
    let notes = Vec::new();
    let mut grid = Grid { sheet, glyphs, columns, rows, view, console, now, notes };
    grid.notes = grid.notes();
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
    grid.draw_notes();
    grid.keys();
    let mut sheet = grid.sheet.enlarged(size, grid.glyphs.scale, GROUND);
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
        let at = self.cell(column, row);
        self.sheet.write(at, self.glyphs.font, color, &fit(text, width));
    }

    /// Draws a heading into a row.
    fn head(&mut self, column: usize, row: usize, text: &str, width: usize) {
        let width = width.min(self.columns.saturating_sub(column));
        let at = self.cell(column, row);
        self.sheet.write(at, self.glyphs.bold, INK_2, &fit(text, width));
    }

    /// Draws a shape, one and a half cells wide.
    fn sign(&mut self, column: usize, row: usize, sign: Shape, tone: Tone) {
        let at = self.cell(column, row) + Point::new(0, 2);
        shape::draw(&mut self.sheet, at, 13, sign, palette::of(tone));
    }

    /// Fills a row with a color.
    fn ground(&mut self, row: usize, color: Rgb565) {
        let size = Size::new(self.width(), self.glyphs.cell.height);
        self.sheet.fill(Rectangle::new(self.cell(0, row), size), color);
    }

    fn width(&self) -> u32 {
        use embedded_graphics::prelude::OriginDimensions;
        self.sheet.size().width
    }

    /// Returns the upper left corner of a cell, in pixels.
    fn cell(&self, column: usize, row: usize) -> Point {
        let Size { width, height } = self.glyphs.cell;
        Point::new(column as i32 * width as i32, row as i32 * height as i32)
    }

    /// Returns the first row of the bottom area, which contains notes and keys.
    fn bottom(&self) -> usize {
        self.rows - 1 - self.notes.len().max(1)
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
        let mut left = format!("{}   v{}", view.name, view.version);
        if !view.slot.is_empty() {
            left.push_str(&format!("   slot {}", view.slot));
        }
        self.put(1, 0, INK, &left, self.columns.saturating_sub(taken + 6));
        self.put(self.columns - taken - 3, 0, INK, &right, taken);
        self.sign(self.columns - 2, 0, sign, word.tone);
    }

    /// Returns the text above an open prompt, else the outcome of the last order, else the most
    /// urgent problem.
    fn notes(&self) -> Vec<String> {
        let text = match (self.question_above(), self.console.outcome(self.now)) {
            (Some(more), _) => more,
            (None, Some(Outcome::Done(text))) => text.clone(),
            (None, Some(Outcome::Refused(reason))) => format!("Not done: {reason}"),
            (None, None) => self.diagnostics().unwrap_or_default(),
        };
        wrap(&text, self.columns - 4, NOTES_MAX)
    }

    /// Returns the most urgent problem; `None` on the tab that lists the problems.
    fn diagnostics(&self) -> Option<String> {
        if self.console.tab == Tab::Now && self.view.starting().is_none() {
            return None;
        }
        let trouble = problems(self.view).into_iter().next()?.trouble;
        let code = match trouble.code.as_str() {
            "" => String::new(),
            code => format!(" ({code})"),
        };
        Some(format!("{}{code}", trouble.sentence()))
    }

    fn draw_notes(&mut self) {
        let first = self.bottom();
        let asks = self.prompt().is_some();
        let is_done = matches!(self.console.outcome(self.now), Some(Outcome::Done(_)));
        if !asks && !is_done && !self.notes.is_empty() {
            let square = self.cell(1, first) + Point::new(0, 4);
            let square = Rectangle::new(square, Size::new_equal(9));
            self.sheet.fill(square, BAD);
            self.sheet.note(square, "■".to_owned());
        }
        let color = if asks { WAIT } else { INK };
        for (at, line) in self.notes.clone().iter().enumerate() {
            self.put(3, first + at, color, line, self.columns - 4);
        }
    }

    /// Returns the open prompt, with the seconds until it closes.
    fn prompt(&self) -> Option<(&Prompt, u64)> {
        let prompt = self.console.prompt.as_ref()?;
        Some((prompt, prompt.seconds(self.now)?))
    }

    /// Returns the text above an open prompt; `None` without an open prompt.
    fn question_above(&self) -> Option<String> {
        let (prompt, _) = self.prompt()?;
        let asked = match &prompt.order {
            PanelOrder::Box(Action::FactoryReset) => {
                let erased = ErasureSummary::of(self.view).sentence();
                return Some(format!(
                    "FACTORY RESET erases {erased}. The systems in both slots stay."
                ));
            }
            PanelOrder::Box(action) => *action,
            order => return Some(Question::of(self.view, order, self.columns).effect),
        };
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
        if let Some((color, text)) = self.question() {
            return self.put(1, row, color, &text, self.columns - 2);
        }
        let mut column = 1;
        for (key, tab, name) in TABS {
            let color = if tab == self.console.tab { RUN } else { INK };
            column = self.hint(column, &format!("F{key}"), name, color);
        }
        if self.console.actions.contains(&Action::Restart) {
            self.hint(column, "F12", "Restart…", INK);
        }
    }

    /// Returns the open prompt with its keys; `None` without an open prompt.
    fn question(&self) -> Option<(Rgb565, String)> {
        let (prompt, seconds) = self.prompt()?;
        let Prompt { order, name, typed, .. } = prompt;
        let title = Question::of(self.view, order, self.columns / 3).title;
        if name.is_empty() {
            let effect = match order {
                PanelOrder::Box(action) => format!(" {}.", action.effect()),
                PanelOrder::Machine(_) => String::new(),
            };
            return Some((WAIT, format!("{title}{effect}   Enter = yes   any other key = no")));
        }
        let yes = match order {
            PanelOrder::Box(_) => "ERASE".to_owned(),
            PanelOrder::Machine(order) => order.action.label().to_uppercase(),
        };
        let room = self.columns / 3;
        let name = fit(name, room);
        let seen: String = typed.chars().skip(typed.chars().count().saturating_sub(room)).collect();
        Some((BAD, format!("Type {name} and Enter: {yes}   or wait {seconds} s: no   > {seen}_")))
    }

    fn hint(&mut self, column: usize, key: &str, name: &str, color: Rgb565) -> usize {
        let row = self.rows - 1;
        self.put(column, row, INK_2, key, key.len());
        let at = column + key.len() + 1;
        self.put(at, row, color, name, 9);
        at + name.chars().count() + 2
    }
}
