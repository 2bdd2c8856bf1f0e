//! QR codes: dark modules on a light background. The caller leaves the quiet zone around the code.

use embedded_graphics::pixelcolor::PixelColor;
use embedded_graphics::prelude::{Point, Size};
use embedded_graphics::primitives::Rectangle;
use qrcodegen::{Mask, QrCode, QrCodeEcc, QrSegment, Version};

use super::Sheet;

/// Modules per side of QR version 2.
pub const MODULES: u32 = 25;

/// Encodes `text`: version 2, level M, alphanumeric mode. `None` if the text does not fit;
/// [`status::view::Claim::link`] returns only texts that fit.
pub fn encode(text: &str) -> Option<QrCode> {
    let segments = [QrSegment::make_alphanumeric(text)];
    let version = Version::new(2);
    let code = QrCode::encode_segments_advanced(
        &segments,
        QrCodeEcc::Medium,
        version,
        version,
        None::<Mask>,
        false,
    );
    code.ok()
}

/// Fills `area` with `paper` and draws `code`, which encodes `text`, in its center. A module is
/// `module` pixels wide.
pub fn draw<C: PixelColor>(
    sheet: &mut Sheet<C>,
    area: Rectangle,
    module: u32,
    (text, code): (&str, &QrCode),
    (paper, dark): (C, C),
) {
    sheet.fill(area, paper);
    let modules = u32::try_from(code.size()).unwrap_or_default();
    let margin = Size::new(
        area.size.width.saturating_sub(modules * module) / 2,
        area.size.height.saturating_sub(modules * module) / 2,
    );
    let origin = area.top_left + margin;
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
            let at = origin + Point::new(x, y) * i32::try_from(module).unwrap_or(1);
            sheet.fill(Rectangle::new(at, Size::new_equal(module)), dark);
        }
    }
    sheet.note(area, format!("<{text}>"));
}
