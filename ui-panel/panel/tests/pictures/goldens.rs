use std::path::{Path, PathBuf};

use panel::backends::png::encode;
use panel::model::{Kind, Page};
use panel::screens::{self, Picture, monitor, oled, tft};

use crate::stage;

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Compares a picture with the golden files of `name`, as text and pixel by pixel.
fn check(name: &str, picture: &Picture, column: u32) -> Result<(), String> {
    let text = match picture {
        Picture::Mono(sheet) => sheet.transcript(column),
        Picture::Color(sheet) => sheet.transcript(column),
    };
    let file = encode(picture).unwrap();
    let (as_text, as_image) = (golden(&format!("{name}.txt")), golden(&format!("{name}.png")));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(as_text.parent().unwrap()).unwrap();
        std::fs::write(&as_text, &text).unwrap();
        std::fs::write(&as_image, &file).unwrap();
    }
    let want = std::fs::read_to_string(&as_text).unwrap_or_default();
    if want != text {
        return Err(format!("{} is\n{want}and should be\n{text}", as_text.display()));
    }
    let want = std::fs::read(&as_image).unwrap_or_default();
    if pixels(&want) != pixels(&file) {
        return Err(format!("{} differs; UPDATE=1 draws it anew", as_image.display()));
    }
    Ok(())
}

/// Size and bytes of a PNG; `None` for any other file.
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
                Page::Rack(_) | Page::Images | Page::Machine(_) => kind == Kind::Oled,
                Page::Installing(_) => kind == Kind::Tft,
                _ => false,
            };
            if !elsewhere {
                let picture = screens::draw(&view, &stage::shown(kind, page.clone()));
                wrong.extend(check(&format!("{folder}/{name}"), &picture, column).err());
            }
        }
    }
    for (name, view, console) in stage::tabs() {
        let picture = stage::monitor(&view, &console);
        wrong.extend(check(&format!("console/{name}"), &picture, monitor::CELL.width).err());
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
    assert!(std::env::var_os("UPDATE").is_some() || check("oled/home", &picture, 6).is_err());
}
