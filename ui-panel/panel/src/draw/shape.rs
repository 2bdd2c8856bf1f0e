//! Shapes of the states, in any size of at least 9 pixels.

use embedded_graphics::pixelcolor::PixelColor;
use embedded_graphics::prelude::{Angle, Point, Size};
use embedded_graphics::primitives::{Arc, Circle, Line, PrimitiveStyle, Rectangle, Triangle};
use status::words::Shape;

use super::Sheet;

/// Returns the character that stands for a shape in a transcript.
pub fn sign(shape: Shape) -> &'static str {
    match shape {
        Shape::DottedRing => "◌",
        Shape::FilledDot => "●",
        Shape::HalfDot => "◐",
        Shape::Triangle => "△",
        Shape::Arc => "◔",
        Shape::Tick => "✓",
        Shape::Cross => "✗",
        Shape::SlashedRing => "⊘",
        Shape::CrossClock => "⊗",
        Shape::Question => "?",
        Shape::Ring => "○",
        Shape::Bars => "‖",
        Shape::Minus => "−",
    }
}

/// Draws a shape into a square of `side` pixels.
pub fn draw<C: PixelColor>(sheet: &mut Sheet<C>, at: Point, side: u32, shape: Shape, color: C) {
    let area = Rectangle::new(at, Size::new_equal(side));
    let pen = PrimitiveStyle::with_stroke(color, (side / 7).max(1));
    let solid = PrimitiveStyle::with_fill(color);
    let last = i32::try_from(side).unwrap_or(i32::MAX) - 1;
    let part = |of: i32, whole: i32| last * of / whole;
    let inner = |by: i32| {
        let shrunk = side.saturating_sub(2 * by.unsigned_abs());
        Circle::new(at + Point::new_equal(by), shrunk)
    };
    let mut line = |from: (i32, i32), to: (i32, i32)| {
        let line = Line::new(at + Point::new(from.0, from.1), at + Point::new(to.0, to.1));
        sheet.stroke(&line, pen);
    };
    let edge = part(1, 8).max(1);
    match shape {
        Shape::Tick => {
            line((edge, part(1, 2)), (part(3, 8), part(7, 8)));
            line((part(3, 8), part(7, 8)), (last - edge, part(1, 6)));
        }
        Shape::Cross => {
            line((edge, edge), (last - edge, last - edge));
            line((edge, last - edge), (last - edge, edge));
        }
        Shape::SlashedRing => {
            line((part(1, 4), part(3, 4)), (part(3, 4), part(1, 4)));
            sheet.stroke(&inner(1), pen);
        }
        Shape::CrossClock => {
            line((0, part(2, 5)), (part(3, 5), last));
            line((0, last), (part(3, 5), part(2, 5)));
            let clock = side / 2;
            let corner = at + Point::new(last + 1 - i32::try_from(clock).unwrap_or(0), 0);
            sheet.stroke(&Circle::new(corner, clock), PrimitiveStyle::with_stroke(color, 1));
        }
        Shape::Ring => sheet.stroke(&inner(1), pen),
        Shape::FilledDot => sheet.stroke(&inner(edge), solid),
        Shape::HalfDot => half_dot(sheet, inner(1), color, pen),
        Shape::DottedRing => dotted_ring(sheet, area, color),
        Shape::Arc => {
            let arc =
                Arc::from_circle(inner(1), Angle::from_degrees(-90.0), Angle::from_degrees(250.0));
            sheet.stroke(&arc, pen);
        }
        Shape::Triangle => {
            let corner = |x, y| at + Point::new(x, y);
            let (left, right) = (corner(edge, last - edge), corner(last - edge, last - edge));
            sheet.stroke(&Triangle::new(left, right, corner(part(1, 2), edge)), pen);
        }
        Shape::Question => question(sheet, area, color, pen),
        Shape::Bars => {
            let bar = Size::new((side / 4).max(2), side - 2 * edge.unsigned_abs());
            for x in [part(1, 5), last + 1 - part(1, 5) - bar.width as i32] {
                sheet.fill(Rectangle::new(at + Point::new(x, edge), bar), color);
            }
        }
        Shape::Minus => {
            let height = (side / 5).max(2);
            let corner = Point::new(edge, (last - height as i32) / 2 + 1);
            let size = Size::new(side - 2 * edge.unsigned_abs(), height);
            sheet.fill(Rectangle::new(at + corner, size), color);
        }
    }
    sheet.note(area, sign(shape).to_owned());
}

fn half_dot<C: PixelColor>(sheet: &mut Sheet<C>, circle: Circle, color: C, pen: PrimitiveStyle<C>) {
    sheet.stroke(&circle, pen);
    let radius = circle.diameter as i32;
    for y in 0..radius {
        for x in 0..radius / 2 {
            // Twice the distance from the center, so that half pixels count.
            let (dx, dy) = (2 * x + 1 - radius, 2 * y + 1 - radius);
            if dx * dx + dy * dy < radius * radius {
                sheet.fill(
                    Rectangle::new(circle.top_left + Point::new(x, y), Size::new_equal(1)),
                    color,
                );
            }
        }
    }
}

fn dotted_ring<C: PixelColor>(sheet: &mut Sheet<C>, area: Rectangle, color: C) {
    let dot = (area.size.width / 7).max(1);
    let radius = f64::from(area.size.width - dot) / 2.0;
    for step in 0..8 {
        let angle = std::f64::consts::FRAC_PI_4 * f64::from(step);
        let offset = |part: f64| (radius + radius * part).round() as i32;
        let at = area.top_left + Point::new(offset(angle.cos()), offset(angle.sin()));
        sheet.fill(Rectangle::new(at, Size::new_equal(dot)), color);
    }
}

fn question<C: PixelColor>(
    sheet: &mut Sheet<C>,
    area: Rectangle,
    color: C,
    pen: PrimitiveStyle<C>,
) {
    let side = area.size.width as i32;
    let bow = (side * 3 / 5) as u32;
    let corner = area.top_left + Point::new((side - bow as i32) / 2, 1);
    let arc = Arc::new(corner, bow, Angle::from_degrees(180.0), Angle::from_degrees(250.0));
    sheet.stroke(&arc, pen);
    let middle = area.top_left + Point::new(side / 2, 0);
    let stem = Line::new(middle + Point::new(0, bow as i32), middle + Point::new(0, side * 7 / 10));
    sheet.stroke(&stem, pen);
    let dot = pen.stroke_width.max(1);
    let foot = middle + Point::new(-(dot as i32) / 2, side - 1 - dot as i32);
    sheet.fill(Rectangle::new(foot, Size::new_equal(dot)), color);
}
