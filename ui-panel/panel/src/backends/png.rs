//! Encoder of a picture as a PNG file, for `/panel.png` and for tests.

use embedded_graphics::pixelcolor::{BinaryColor, PixelColor, Rgb888};
use embedded_graphics::prelude::{OriginDimensions, RgbColor};
use thiserror::Error;

use crate::draw::Sheet;
use crate::screens::Picture;

/// Scale of a monochrome page in the file: pixels of the file per pixel of the screen.
pub const MONO_SCALE: u32 = 4;

/// Error of the PNG encoder.
#[derive(Debug, Error)]
#[error("could not write the picture of the panel as PNG")]
pub struct Error(#[from] ::png::EncodingError);

/// Encodes a picture as a PNG file.
///
/// # Errors
/// The encoder cannot write to memory.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, Error> {
    match picture {
        Picture::Mono(sheet) => write(sheet, MONO_SCALE, |color| match color {
            BinaryColor::On => [0xff; 3],
            BinaryColor::Off => [0; 3],
        }),
        Picture::Color(sheet) => write(sheet, 1, |color| {
            let color = Rgb888::from(color);
            [color.r(), color.g(), color.b()]
        }),
    }
}

fn write<C: PixelColor>(
    sheet: &Sheet<C>,
    scale: u32,
    rgb: impl Fn(C) -> [u8; 3],
) -> Result<Vec<u8>, Error> {
    let size = sheet.size();
    let mut bytes = Vec::new();
    for row in sheet.pixels().chunks_exact(size.width.max(1) as usize) {
        let wide = |color: &C| std::iter::repeat_n(rgb(*color), scale as usize).flatten();
        let line: Vec<u8> = row.iter().flat_map(wide).collect();
        (0..scale).for_each(|_| bytes.extend_from_slice(&line));
    }
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, size.width * scale, size.height * scale);
    encoder.set_color(::png::ColorType::Rgb);
    encoder.set_depth(::png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&bytes)?;
    writer.finish()?;
    Ok(file)
}
