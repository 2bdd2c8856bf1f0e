//! Colors of the dark design tokens for the panel's screens, on black.

use embedded_graphics::pixelcolor::Rgb565;
use embedded_graphics::prelude::RgbColor;
use status::words::Tone;

const fn token(hex: u32) -> Rgb565 {
    let (red, green, blue) = (hex >> 16 & 0xff, hex >> 8 & 0xff, hex & 0xff);
    Rgb565::new((red >> 3) as u8, (green >> 2) as u8, (blue >> 3) as u8)
}

/// Background color of every screen.
pub const GROUND: Rgb565 = Rgb565::BLACK;
/// Color of a QR code's light modules.
pub const PAPER: Rgb565 = Rgb565::WHITE;
/// Color of ordinary text.
pub const INK: Rgb565 = token(0x00ee_f1f5);
/// Color of secondary text.
pub const INK_2: Rgb565 = token(0x00b3_bccb);
/// Color of work in progress.
pub const RUN: Rgb565 = token(0x007d_b7f5);
/// Color of a success.
pub const OK: Rgb565 = token(0x006f_cf8f);
/// Color of waiting work.
pub const WAIT: Rgb565 = token(0x00f2_b84b);
/// Color of a problem.
pub const BAD: Rgb565 = token(0x00ff_8a80);
/// Color of the edges of selectable items.
pub const BORDER: Rgb565 = token(0x007a_869a);
/// Color of dividing lines.
pub const HAIRLINE: Rgb565 = token(0x0032_3b49);
/// Background color of a bar across the screen.
pub const RAISED: Rgb565 = token(0x0019_1f28);

/// Returns the color of a tone.
pub fn of(tone: Tone) -> Rgb565 {
    match tone {
        Tone::Quiet => INK_2,
        Tone::Busy => RUN,
        Tone::Waiting => WAIT,
        Tone::Good => OK,
        Tone::Bad => BAD,
    }
}

#[cfg(test)]
mod tests {
    use super::{BAD, BORDER, GROUND, INK, INK_2, OK, RUN, WAIT};
    use embedded_graphics::pixelcolor::{Rgb565, Rgb888};
    use embedded_graphics::prelude::RgbColor;

    /// Returns the relative luminance as WCAG defines it.
    fn luminance(color: Rgb565) -> f64 {
        let color = Rgb888::from(color);
        let linear = |channel: u8| match f64::from(channel) / 255.0 {
            low if low <= 0.04045 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * linear(color.r()) + 0.7152 * linear(color.g()) + 0.0722 * linear(color.b())
    }

    #[test]
    fn text_can_be_read_across_the_rack() {
        for color in [INK, INK_2, OK, RUN, WAIT, BAD] {
            let contrast = (luminance(color) + 0.05) / (luminance(GROUND) + 0.05);
            assert!(contrast >= 9.0, "{color:?} {contrast:.1}");
        }
        assert!((luminance(BORDER) + 0.05) / 0.05 >= 3.0);
    }
}
