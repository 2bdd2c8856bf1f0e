//! Choice of the font by the size of the monitor.

use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_1::{FONT_9X18, FONT_9X18_BOLD, FONT_10X20};
use embedded_graphics::prelude::Size;

/// Minimum number of columns and rows of the grid.
const COLUMNS_MIN: usize = 88;
const ROWS_MIN: usize = 29;
/// Maximum enlargement of a font.
const SCALE_MAX: u32 = 8;

/// Fonts of the grid, and their enlargement.
#[derive(Clone, Copy)]
pub struct Glyphs {
    /// Font of texts, as high and wide as a cell.
    pub font: &'static MonoFont<'static>,
    /// Font of headings, not wider than `font`.
    pub bold: &'static MonoFont<'static>,
    /// Size of a cell in pixels, before the enlargement.
    pub cell: Size,
    /// Number of pixels of the monitor for one pixel of the font, in each direction.
    pub scale: u32,
}

impl Glyphs {
    /// Returns the largest characters with which a monitor has enough columns and rows.
    pub fn of(size: Size) -> Self {
        let fits = |glyphs: &Self| {
            let (columns, rows) = glyphs.grid(size);
            columns >= COLUMNS_MIN && rows >= ROWS_MIN
        };
        let all = (1..=SCALE_MAX).flat_map(|scale| [Self::small(scale), Self::large(scale)]);
        let fitting = all.filter(fits).max_by_key(|glyphs| glyphs.cell.height * glyphs.scale);
        fitting.unwrap_or(Self::small(1))
    }

    fn small(scale: u32) -> Self {
        Self { font: &FONT_9X18, bold: &FONT_9X18_BOLD, cell: Size::new(9, 18), scale }
    }

    fn large(scale: u32) -> Self {
        Self { font: &FONT_10X20, bold: &FONT_9X18_BOLD, cell: Size::new(10, 20), scale }
    }

    /// Returns the number of columns and rows. The lowest line of pixels belongs to the walking
    /// dot.
    pub fn grid(&self, size: Size) -> (usize, usize) {
        let cell = self.cell * self.scale;
        let height = size.height.saturating_sub(1);
        ((size.width / cell.width) as usize, (height / cell.height) as usize)
    }
}

/// Returns the width of a column on a monitor of this size, in pixels.
pub fn cell_width(size: Size) -> u32 {
    let glyphs = Glyphs::of(size);
    glyphs.cell.width * glyphs.scale
}

#[cfg(test)]
mod tests {
    use super::{Glyphs, Size};

    #[test]
    fn characters_grow_with_the_monitor() {
        for (size, cell, grid) in [
            ((800, 600), (9, 18), (88, 33)),
            ((1024, 768), (10, 20), (102, 38)),
            ((1280, 800), (10, 20), (128, 39)),
            ((1920, 1080), (18, 36), (106, 29)),
            ((2560, 1440), (20, 40), (128, 35)),
            ((3840, 2160), (36, 72), (106, 29)),
        ] {
            let size = Size::new(size.0, size.1);
            let glyphs = Glyphs::of(size);
            let drawn = glyphs.cell * glyphs.scale;
            assert_eq!((drawn.width, drawn.height), cell, "{size}");
            assert_eq!(glyphs.grid(size), grid, "{size}");
        }
    }
}
