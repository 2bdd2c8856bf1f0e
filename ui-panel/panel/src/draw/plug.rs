//! Picture of a plug on its cable, shown while the box has no address.

use embedded_graphics::pixelcolor::PixelColor;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;

use super::Sheet;

/// Rectangles in units: left, top, width, height. Dark rectangles are drawn over light rectangles.
const LIGHT: [(i32, i32, u32, u32); 3] = [(0, 0, 24, 22), (6, 21, 12, 7), (10, 28, 4, 20)];
const DARK: [(i32, i32, u32, u32); 2] = [(1, 1, 22, 20), (7, 22, 10, 5)];
const CONTACTS: i32 = 4;

/// Size of the picture in units.
pub const SIZE: Size = Size::new(24, 48);

/// Draws the plug with `unit` pixels per unit.
pub fn draw<C: PixelColor>(sheet: &mut Sheet<C>, at: Point, unit: u32, (color, ground): (C, C)) {
    let scale = i32::try_from(unit).unwrap_or(1);
    let part = |(x, y, width, height): (i32, i32, u32, u32)| {
        let corner = at + Point::new(x, y) * scale;
        Rectangle::new(corner, Size::new(width, height) * unit)
    };
    LIGHT.map(part).into_iter().for_each(|area| sheet.fill(area, color));
    DARK.map(part).into_iter().for_each(|area| sheet.fill(area, ground));
    for contact in 0..CONTACTS {
        sheet.fill(part((3 + contact * 5, 3, 3, 8)), color);
    }
    sheet.note(Rectangle::new(at, SIZE * unit), "<cable>".to_owned());
}
