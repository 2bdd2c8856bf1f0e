//! In-memory image with drawing functions, used for every screen.
//!
//! A sheet also records each drawn text with its area, so that a test can read a screen as text. A
//! sheet counts the pixels drawn beyond its edges; tests require zero.

pub mod bar;
pub mod palette;
pub mod plug;
pub mod qr;
pub mod shape;
pub mod text;

use std::convert::Infallible;

use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::PixelColor;
use embedded_graphics::prelude::{Dimensions, DrawTarget, Drawable, OriginDimensions, Pixel};
use embedded_graphics::prelude::{Point, Primitive, Size};
use embedded_graphics::primitives::{PrimitiveStyle, Rectangle};
use embedded_graphics::text::{Baseline, Text};

/// Image in memory, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet<C> {
    size: Size,
    pixels: Vec<C>,
    written: Vec<DrawnText>,
    spilled: usize,
}

/// Text on a sheet, or the text that replaces a drawing in the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnText {
    /// Area of the text.
    pub area: Rectangle,
    /// Text that was drawn.
    pub text: String,
}

impl<C: PixelColor> Sheet<C> {
    /// Creates a sheet filled with one color.
    pub fn new(size: Size, ground: C) -> Self {
        let count = size.width as usize * size.height as usize;
        Self { size, pixels: vec![ground; count], written: Vec::new(), spilled: 0 }
    }

    /// Returns the pixels, row by row.
    pub fn pixels(&self) -> &[C] {
        &self.pixels
    }

    /// Returns the drawn texts with their areas.
    pub fn written(&self) -> &[DrawnText] {
        &self.written
    }

    /// Returns the number of pixels that were drawn beyond the edges.
    pub fn spilled(&self) -> usize {
        self.spilled
    }

    /// Writes one line with its upper left corner at `at`; the caller ensures that the text fits.
    pub fn write(&mut self, at: Point, font: &MonoFont<'_>, color: C, text: &str) {
        let text = text::glyphs(text);
        if text.trim().is_empty() {
            return;
        }
        let line = Text::with_baseline(&text, at, MonoTextStyle::new(font, color), Baseline::Top);
        let area = line.bounding_box();
        let Ok(_) = line.draw(self);
        self.note(area, text.trim_end().to_owned());
    }

    /// Fills a rectangle with a color.
    pub fn fill(&mut self, area: Rectangle, color: C) {
        self.stroke(&area, PrimitiveStyle::with_fill(color));
    }

    /// Draws a primitive with a style.
    pub fn stroke<P>(&mut self, primitive: &P, style: PrimitiveStyle<C>)
    where
        P: Primitive + Copy,
        embedded_graphics::primitives::Styled<P, PrimitiveStyle<C>>: Drawable<Color = C>,
    {
        let Ok(_) = primitive.into_styled(style).draw(self);
    }

    /// Records `text` in the transcript for a drawing at `area`.
    pub fn note(&mut self, area: Rectangle, text: String) {
        self.written.push(DrawnText { area, text });
    }

    /// Returns the picture moved by an offset; new pixels get the color `ground`.
    pub fn shifted(&self, by: Point, ground: C) -> Self {
        let mut moved = Self::new(self.size, ground);
        for (at, color) in self.pixels.iter().enumerate() {
            let (x, y) = (at as u32 % self.size.width, at as u32 / self.size.width);
            let to = Point::new(x as i32, y as i32) + by;
            if let Some(pixel) = moved.pixel(to) {
                *pixel = *color;
            }
        }
        moved.written.clone_from(&self.written);
        moved.spilled = self.spilled;
        moved
    }

    /// Returns the picture of `size`, with each pixel drawn as a square of `scale` pixels.
    pub fn enlarged(self, size: Size, scale: u32, ground: C) -> Self {
        if scale == 1 && size == self.size {
            return self;
        }
        let mut large = Self::new(size, ground);
        for y in 0..size.height.min(self.size.height * scale) {
            for x in 0..size.width.min(self.size.width * scale) {
                let from = (y / scale * self.size.width + x / scale) as usize;
                large.pixels[(y * size.width + x) as usize] = self.pixels[from];
            }
        }
        let enlarge = |text: DrawnText| {
            let Rectangle { top_left, size } = text.area;
            DrawnText { area: Rectangle::new(top_left * scale as i32, size * scale), ..text }
        };
        large.written = self.written.into_iter().map(enlarge).collect();
        large.spilled = self.spilled;
        large
    }

    /// Borrows a pixel; `None` outside the image.
    pub fn pixel(&mut self, at: Point) -> Option<&mut C> {
        let (x, y) = (u32::try_from(at.x).ok()?, u32::try_from(at.y).ok()?);
        let inside = x < self.size.width && y < self.size.height;
        let index = y as usize * self.size.width as usize + x as usize;
        if inside { self.pixels.get_mut(index) } else { None }
    }

    /// Lays out the drawn texts as lines; `column` is the width of a column in pixels.
    pub fn transcript(&self, column: u32) -> String {
        let mut written: Vec<&DrawnText> = self.written.iter().collect();
        written.sort_by_key(|it| (it.area.top_left.y, it.area.top_left.x));
        let mut lines: Vec<(i32, Vec<&DrawnText>)> = Vec::new();
        for it in written {
            let y = it.area.top_left.y + it.area.size.height as i32 / 2;
            match lines.iter_mut().find(|(middle, _)| (*middle - y).abs() < LINE_PIXELS_MIN) {
                Some((_, line)) => line.push(it),
                None => lines.push((y, vec![it])),
            }
        }
        lines.sort_by_key(|(y, _)| *y);
        lines.into_iter().map(|(_, line)| transcribe(line, column)).collect()
    }
}

/// Minimum distance in pixels between the centers of two transcript lines.
const LINE_PIXELS_MIN: i32 = 7;

fn transcribe(mut line: Vec<&DrawnText>, column: u32) -> String {
    line.sort_by_key(|it| it.area.top_left.x);
    let mut text = String::new();
    for it in line {
        let at = usize::try_from(it.area.top_left.x).unwrap_or_default() / column as usize;
        let used = text.chars().count();
        let gap = at.saturating_sub(used).max(usize::from(used > 0));
        text.extend(std::iter::repeat_n(' ', gap));
        text.push_str(&it.text);
    }
    text.push('\n');
    text
}

impl<C> OriginDimensions for Sheet<C> {
    fn size(&self) -> Size {
        self.size
    }
}

impl<C: PixelColor> DrawTarget for Sheet<C> {
    type Color = C;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<C>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(at, color) in pixels {
            match self.pixel(at) {
                Some(pixel) => *pixel = color,
                None => self.spilled += 1,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
