use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use embedded_graphics::pixelcolor::{BinaryColor, Rgb565};
use embedded_graphics::prelude::{Point, RgbColor, Size};
use embedded_hal::i2c::{ErrorType, I2c, Operation};

use super::backlight::Backlight;
use super::fbdev::{Error, Framebuffer, Geometry};
use super::png;
use super::ssd1306::Oled;
use crate::draw::Sheet;
use crate::model::Light;
use crate::screens::Picture;

/// Test double of a bus that records the written bytes and can fail.
#[derive(Clone, Default)]
struct Bus {
    sent: Rc<RefCell<Vec<Vec<u8>>>>,
    dead: Rc<RefCell<bool>>,
}

#[derive(Debug)]
struct Silence;

impl embedded_hal::i2c::Error for Silence {
    fn kind(&self) -> embedded_hal::i2c::ErrorKind {
        embedded_hal::i2c::ErrorKind::Other
    }
}

impl ErrorType for Bus {
    type Error = Silence;
}

impl I2c for Bus {
    fn transaction(
        &mut self,
        address: u8,
        operations: &mut [Operation<'_>],
    ) -> Result<(), Silence> {
        assert_eq!(address, 0x3c);
        if *self.dead.borrow() {
            return Err(Silence);
        }
        for operation in operations {
            let Operation::Write(bytes) = operation else { panic!("nothing is read from an OLED") };
            self.sent.borrow_mut().push(bytes.to_vec());
        }
        Ok(())
    }
}

impl Bus {
    /// Returns the number of pixel bytes since the last call (messages that begin with 0x40).
    fn pixels(&self) -> usize {
        let sent = self.sent.take();
        sent.iter().filter(|it| it[0] == 0x40).map(|it| it.len() - 1).sum()
    }

    fn commands(&self) -> Vec<u8> {
        self.sent
            .take()
            .into_iter()
            .filter(|it| it[0] == 0)
            .flat_map(|it| it[1..].to_vec())
            .collect()
    }
}

fn mono() -> Sheet<BinaryColor> {
    Sheet::new(Size::new(128, 64), BinaryColor::Off)
}

#[test]
fn an_oled_gets_only_what_changed() {
    let bus = Bus::default();
    let mut oled = Oled::new(bus.clone(), 0x3c).unwrap();
    let mut sheet = mono();
    oled.show(&sheet, Light::Full).unwrap();
    bus.sent.take();
    oled.show(&sheet, Light::Full).unwrap();
    assert_eq!(bus.pixels(), 0);
    *sheet.pixel(Point::new(5, 63)).unwrap() = BinaryColor::On;
    oled.show(&sheet, Light::Full).unwrap();
    let sent = bus.pixels();
    assert!((1..=16).contains(&sent), "{sent} bytes for one pixel");
}

#[test]
fn an_oled_dims_and_goes_dark() {
    let bus = Bus::default();
    let mut oled = Oled::new(bus.clone(), 0x3c).unwrap();
    let mut of = |light| {
        oled.show(&mono(), light).unwrap();
        bus.commands()
    };
    of(Light::Full);
    assert!(of(Light::Full).is_empty());
    let dim = of(Light::Dim);
    assert!(dim.windows(2).any(|it| it == [0x81, 26]), "10 % of the contrast: {dim:x?}");
    assert!(of(Light::Off).contains(&0xae));
    assert!(of(Light::Full).contains(&0xaf));
}

#[test]
fn an_oled_that_comes_back_gets_everything_again() {
    let bus = Bus::default();
    let mut oled = Oled::new(bus.clone(), 0x3c).unwrap();
    let mut sheet = mono();
    oled.show(&sheet, Light::Full).unwrap();
    *sheet.pixel(Point::new(0, 0)).unwrap() = BinaryColor::On;
    *bus.dead.borrow_mut() = true;
    let error = oled.show(&sheet, Light::Full).unwrap_err();
    assert!(error.to_string().contains("3c"), "{error}");
    assert!(Oled::new(bus.clone(), 0x3c).is_err());
    *bus.dead.borrow_mut() = false;
    bus.sent.take();
    oled.show(&sheet, Light::Full).unwrap();
    assert_eq!(bus.pixels(), 128 * 64 / 8);
}

/// Creates a framebuffer device from ordinary files.
fn device(folder: &Path, size: &str, stride: &str, bits: &str) -> Result<Framebuffer, Error> {
    for (name, text) in [("virtual_size", size), ("stride", stride), ("bits_per_pixel", bits)] {
        std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
    }
    std::fs::write(folder.join("fb0"), []).unwrap();
    Framebuffer::open(folder, &folder.join("fb0"))
}

/// Creates a sheet of 2×1 pixels: red, white.
fn color() -> Sheet<Rgb565> {
    let mut sheet = Sheet::new(Size::new(2, 1), Rgb565::RED);
    *sheet.pixel(Point::new(1, 0)).unwrap() = Rgb565::WHITE;
    sheet
}

#[test]
fn a_framebuffer_gets_its_own_kind_of_pixels_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &str, &[u8]); 2] = [
        ("16", "16", &[0x00, 0xf8, 0xff, 0xff]),
        ("32", "20", &[0, 0, 0xff, 0, 0xff, 0xff, 0xff, 0]),
    ];
    for (bits, stride, middle) in cases {
        let mut screen = device(folder.path(), "4,3", stride, bits).unwrap();
        assert_eq!(screen.size(), Size::new(4, 3));
        assert_eq!(screen.show(&color()).unwrap(), 3);
        let bytes = std::fs::read(folder.path().join("fb0")).unwrap();
        let (stride, pixel) = (stride.parse::<usize>().unwrap(), middle.len() / 2);
        let at = stride + pixel;
        assert_eq!(&bytes[at..at + middle.len()], middle, "{bits} bits");
        let lit = bytes.iter().filter(|byte| **byte != 0).count();
        assert_eq!(lit, middle.iter().filter(|byte| **byte != 0).count(), "the rest is black");
    }
}

#[test]
fn a_framebuffer_gets_only_rows_that_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = device(folder.path(), "4,3", "8", "16").unwrap();
    let mut sheet = Sheet::new(Size::new(4, 3), Rgb565::RED);
    assert_eq!(screen.show(&sheet).unwrap(), 3);
    assert_eq!(screen.show(&sheet).unwrap(), 0);
    let file = folder.path().join("fb0");
    for (y, written) in [(0, 0..2), (1, 0..2), (2, 1..3)] {
        *sheet.pixel(Point::new(0, y)).unwrap() = Rgb565::GREEN;
        std::fs::write(&file, [0xaa; 24]).unwrap();
        assert_eq!(screen.show(&sheet).unwrap(), 1);
        // The kernel does not show a write of a single row, so an adjacent row is written too.
        let bytes = std::fs::read(&file).unwrap();
        let are = |row: usize| bytes[8 * row..8 * row + 8] != [0xaa; 8];
        assert_eq!((0..3).filter(|row| are(*row)).collect::<Vec<_>>(), written.collect::<Vec<_>>());
    }
}

#[test]
fn of_a_page_that_is_too_large_the_middle_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = device(folder.path(), "1,1", "2", "16").unwrap();
    let mut sheet = Sheet::new(Size::new(3, 3), Rgb565::BLACK);
    *sheet.pixel(Point::new(1, 1)).unwrap() = Rgb565::WHITE;
    screen.show(&sheet).unwrap();
    assert_eq!(std::fs::read(folder.path().join("fb0")).unwrap(), [0xff, 0xff]);
}

#[test]
fn what_sysfs_says_wrong_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (("1024x768", "2048", "16"), "size like 1024,768"),
        (("0,768", "2048", "16"), "size like 1024,768"),
        (("99999,768", "2048", "16"), "size like 1024,768"),
        (("1024,768", "2048", "24"), "24 bits per pixel"),
        (("1024,768", "2048", "many"), "expected number, found"),
        (("1024,768", "2046", "16"), "length of such a row"),
        (("1024,768", "4294967295", "16"), "length of such a row"),
    ];
    for ((size, stride, bits), expected) in cases {
        let error = device(folder.path(), size, stride, bits).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = Geometry::read(&folder.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("virtual_size"), "{error}");
}

#[test]
fn a_device_that_takes_nothing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    device(folder.path(), "2,1", "4", "16").unwrap();
    let mut screen = Framebuffer::open(folder.path(), Path::new("/dev/full")).unwrap();
    let error = screen.show(&color()).unwrap_err();
    assert_eq!(error.to_string(), "could not write to /dev/full");
}

#[test]
fn a_backlight_is_as_bright_as_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let brightness = || std::fs::read_to_string(folder.path().join("brightness")).unwrap();
    assert!(Backlight::open(folder.path()).is_err());
    for (max, full, dim) in [("255\n", "255", "51"), ("7", "7", "1"), ("1", "1", "1")] {
        std::fs::write(folder.path().join("max_brightness"), max).unwrap();
        std::fs::write(folder.path().join("brightness"), "0").unwrap();
        let mut backlight = Backlight::open(folder.path()).unwrap();
        for (light, expected) in [(Light::Full, full), (Light::Dim, dim), (Light::Off, "0")] {
            backlight.set(light).unwrap();
            assert_eq!(brightness(), expected, "{light:?} of {max}");
        }
    }
    for wrong in ["bright", "0", "-1"] {
        std::fs::write(folder.path().join("max_brightness"), wrong).unwrap();
        let error = Backlight::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("max_brightness") && error.contains(wrong), "{error}");
    }
}

#[test]
fn a_small_screen_is_enlarged_in_its_file() {
    let file = png::encode(&Picture::Mono(mono())).unwrap();
    let reader = ::png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (512, 256));
}
