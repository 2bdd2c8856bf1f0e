//! Progress bars of characters or pixels. A bar is full only at 100 %, and empty only at 0.

use embedded_graphics::pixelcolor::PixelColor;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::{PrimitiveStyleBuilder, Rectangle, StrokeAlignment};

use super::Sheet;

/// Returns the number of filled cells of a bar with `cells` cells, for `done` of `all`.
pub fn cells(done: u64, all: u64, cells: u64) -> u64 {
    let done = u128::from(done.min(all));
    let (all, count) = (u128::from(all.max(1)), u128::from(cells));
    let filled = u64::try_from((done * count + all / 2) / all).unwrap_or(cells);
    match done {
        0 => 0,
        _ if done == all => cells,
        _ => filled.clamp(1.min(cells), cells.saturating_sub(1).max(1)),
    }
}

/// Formats a bar such as `[######..]`, with `width` characters including its brackets.
pub fn of_characters(done: u64, all: u64, width: usize) -> String {
    let inner = width.saturating_sub(2);
    let filled = usize::try_from(cells(done, all, inner as u64)).unwrap_or(inner);
    format!("[{}{}]", "#".repeat(filled), ".".repeat(inner - filled))
}

/// Draws a bar of pixels: progress and background in two colors.
pub fn of_pixels<C: PixelColor>(
    sheet: &mut Sheet<C>,
    area: Rectangle,
    percent: u8,
    (groove, done): (C, C),
) {
    let edge = PrimitiveStyleBuilder::new()
        .stroke_color(groove)
        .stroke_width(1)
        .stroke_alignment(StrokeAlignment::Inside)
        .build();
    sheet.stroke(&area, edge);
    let inner = Size::new(area.size.width.saturating_sub(4), area.size.height.saturating_sub(4));
    let filled = cells(u64::from(percent), 100, u64::from(inner.width));
    let size = Size::new(u32::try_from(filled).unwrap_or(inner.width), inner.height);
    sheet.fill(Rectangle::new(area.top_left + Point::new(2, 2), size), done);
    let width = (area.size.width / 9) as usize;
    let text =
        if width > 3 { of_characters(u64::from(percent), 100, width) } else { String::new() };
    sheet.note(area, text);
}
