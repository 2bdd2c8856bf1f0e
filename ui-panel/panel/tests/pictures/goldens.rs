use panel::backends::png::encode;
use panel::model::{Kind, Page};
use panel::screens::{self, Picture, monitor, oled, tft};

use crate::stage;

/// Compares a picture with the golden files of `name`, as text and pixel by pixel.
fn check(name: &str, picture: &Picture, column: u32) -> Result<(), String> {
    let text = match picture {
        Picture::Mono(sheet) => sheet.transcript(column),
        Picture::Color(sheet) => sheet.transcript(column),
    };
    golden::compare(&format!("{name}.txt"), &text)?;
    let is_same = |want: &[u8], file: &[u8]| pixels(want) == pixels(file);
    golden::compare_bytes(&format!("{name}.png"), &encode(picture).unwrap(), is_same)
}

/// Returns width, height and pixel bytes of a PNG; `None` for any other file.
pub fn pixels(file: &[u8]) -> Option<(u32, u32, Vec<u8>)> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().ok()?;
    let mut bytes = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut bytes).ok()?;
    Some((info.width, info.height, bytes))
}

#[test]
fn every_page_looks_as_it_should() {
    let mut wrong = Vec::new();
    for (name, view, page) in stage::pages() {
        for (kind, folder, column) in
            [(Kind::Oled, "oled", oled::COLUMN_PIXELS), (Kind::Tft, "tft", tft::COLUMN_PIXELS)]
        {
            let elsewhere = match page {
                Page::Images => kind == Kind::Oled,
                Page::Installing => kind == Kind::Tft,
                _ => false,
            };
            if !elsewhere {
                let picture = screens::draw(&view, &stage::shown(kind, page.clone()));
                wrong.extend(check(&format!("{folder}/{name}"), &picture, column).err());
            }
        }
    }
    for (name, view, console) in stage::tabs() {
        for (size, suffix) in stage::monitors() {
            if suffix.is_empty() || stage::is_drawn_large(name) {
                let picture = stage::monitor(&view, &console, size);
                let file = format!("console/{name}{suffix}");
                wrong.extend(check(&file, &picture, monitor::cell_width(size)).err());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_golden_is_compared_by_its_pixels() {
    let (_, view, page) = stage::pages().remove(2);
    let mut picture = screens::draw(&view, &stage::shown(Kind::Oled, page));
    check("oled/home", &picture, oled::COLUMN_PIXELS).unwrap();
    let Picture::Mono(sheet) = &mut picture else { unreachable!() };
    let pixel = sheet.pixel(embedded_graphics::prelude::Point::new(127, 62)).unwrap();
    *pixel = embedded_graphics::pixelcolor::BinaryColor::On;
    assert!(golden::updates() || check("oled/home", &picture, 6).is_err());
}
