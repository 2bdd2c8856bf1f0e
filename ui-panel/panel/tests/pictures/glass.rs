//! Pictures of an emulated SSD1306, decoded from the bytes on its bus.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{Point, Size};
use embedded_hal::i2c::{ErrorKind, ErrorType, I2c, Operation};
use panel::backends::png::encode;
use panel::backends::ssd1306::{ADDRESSES, Oled};
use panel::draw::Sheet;
use panel::front::{Event, Front};
use panel::model::{ACTIONS, Button, Buttons, Kind, Light, OLED_DIM, Page, Settings};
use panel::screens::{self, Picture};
use status::view::example;

use crate::goldens::pixels;
use crate::stage;

/// Number of columns of the display, and number of its pages (eight rows of pixels each).
const COLUMNS: usize = 128;
const PAGES: usize = 8;

/// Emulated SSD1306 by its data sheet (revision 1.1, table 9), with the commands for 128×64 pixels
/// only. An unknown command fails the test.
struct Chip {
    address: u8,
    memory: [[u8; COLUMNS]; PAGES],
    on: bool,
    inverse: bool,
    all: bool,
    contrast: u8,
    charge_pump: bool,
    horizontal: bool,
    remapped: bool,
    reversed: bool,
    columns: (usize, usize),
    pages: (usize, usize),
    at: (usize, usize),
}

impl Chip {
    /// Creates a chip in its state after a reset.
    fn new(address: u8) -> Self {
        Self {
            address,
            // Its memory is undefined after power-on.
            memory: [[0xa5; COLUMNS]; PAGES],
            on: false,
            inverse: false,
            all: false,
            contrast: 0x7f,
            charge_pump: false,
            horizontal: false,
            remapped: false,
            reversed: false,
            columns: (0, COLUMNS - 1),
            pages: (0, PAGES - 1),
            at: (0, 0),
        }
    }

    fn hear(&mut self, message: &[u8]) {
        match message {
            [0x00, command @ ..] => self.obey(command),
            [0x40, data @ ..] => data.iter().for_each(|byte| self.keep(*byte)),
            other => panic!("no control byte: {other:02x?}"),
        }
    }

    fn obey(&mut self, command: &[u8]) {
        let place = |(from, to): (u8, u8), count: usize| {
            let (from, to) = (usize::from(from), usize::from(to));
            assert!(from <= to && to < count, "{command:02x?}");
            (from, to)
        };
        match *command {
            [0x81, contrast] => self.contrast = contrast,
            [0xa4 | 0xa5] => self.all = command[0] & 1 == 1,
            [0xa6 | 0xa7] => self.inverse = command[0] & 1 == 1,
            [0xae | 0xaf] => self.on = command[0] & 1 == 1,
            [0x20, mode] => self.horizontal = mode & 3 == 0,
            [0x21, from, to] => {
                self.columns = place((from, to), COLUMNS);
                self.at.0 = self.columns.0;
            }
            [0x22, from, to] => {
                self.pages = place((from, to), PAGES);
                self.at.1 = self.pages.0;
            }
            [0xa0 | 0xa1] => self.remapped = command[0] & 1 == 1,
            [0xc0 | 0xc8] => self.reversed = command[0] & 8 == 8,
            [0x8d, pump] => self.charge_pump = pump & 4 == 4,
            // All rows, from the first; pins of a module of 64 rows; clock, charge, levels.
            [0xa8, rows] => assert_eq!(rows, 63),
            [0xd3, offset] => assert_eq!(offset, 0),
            [0x40] | [0x2e] => {}
            [0xda, pins] => assert_eq!(pins, 0x12),
            [0xd5 | 0xd9 | 0xdb, _] => {}
            ref other => panic!("an unknown command: {other:02x?}"),
        }
    }

    fn keep(&mut self, byte: u8) {
        assert!(self.horizontal, "the pages are written row by row");
        let (column, page) = self.at;
        self.memory[page][column] = byte;
        let last = (column == self.columns.1, page == self.pages.1);
        self.at = match last {
            (false, _) => (column + 1, page),
            (true, false) => (self.columns.0, page + 1),
            (true, true) => (self.columns.0, self.pages.0),
        };
    }

    /// Returns the visible picture of a module in the usual orientation: flat cable on top.
    fn seen(&self) -> Picture {
        let mut sheet = Sheet::new(Size::new(COLUMNS as u32, 8 * PAGES as u32), BinaryColor::Off);
        assert!(self.remapped && self.reversed, "it stands on its head");
        for y in 0..8 * PAGES {
            for x in 0..COLUMNS {
                let bit = self.memory[y / 8][x] >> (y % 8) & 1 == 1;
                let lit = self.on && self.charge_pump && (self.all || bit != self.inverse);
                *sheet.pixel(Point::new(x as i32, y as i32)).unwrap() = BinaryColor::from(lit);
            }
        }
        Picture::Mono(sheet)
    }
}

/// I2C bus with an emulated chip, whose connection can fail.
#[derive(Clone)]
struct Bus {
    chip: Rc<RefCell<Chip>>,
    pulled: Rc<RefCell<bool>>,
}

impl Bus {
    fn new(address: u8) -> Self {
        Self { chip: Rc::new(RefCell::new(Chip::new(address))), pulled: Rc::default() }
    }

    fn seen(&self) -> Picture {
        self.chip.borrow().seen()
    }
}

#[derive(Debug)]
struct NoAnswer;

impl embedded_hal::i2c::Error for NoAnswer {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NoAcknowledge(embedded_hal::i2c::NoAcknowledgeSource::Address)
    }
}

impl ErrorType for Bus {
    type Error = NoAnswer;
}

impl I2c for Bus {
    fn transaction(&mut self, to: u8, operations: &mut [Operation<'_>]) -> Result<(), NoAnswer> {
        let mut chip = self.chip.borrow_mut();
        if to != chip.address || *self.pulled.borrow() {
            return Err(NoAnswer);
        }
        for operation in operations {
            let Operation::Write(bytes) = operation else { panic!("nothing is read from it") };
            chip.hear(bytes);
        }
        Ok(())
    }
}

fn mono(picture: Picture) -> Sheet<BinaryColor> {
    let Picture::Mono(sheet) = picture else { panic!("an OLED has no colors") };
    sheet
}

/// Returns true if the display shows the golden picture `name`.
fn looks_like(bus: &Bus, name: &str) -> bool {
    let file = std::fs::read(golden::path(&format!("oled/{name}.png"))).unwrap();
    let want = pixels(&file);
    assert!(want.is_some(), "{name} is no picture");
    pixels(&encode(&bus.seen()).unwrap()) == want
}

#[test]
fn every_page_is_on_the_glass_as_it_should_be_after_whatever_was_there_before() {
    for address in ADDRESSES {
        let bus = Bus::new(address);
        let mut oled = Oled::new(bus.clone(), address).unwrap();
        // Only changed pixels are sent, so each page is tested after another one, in both orders.
        let pages = stage::pages();
        for (name, view, page) in pages.iter().chain(pages.iter().rev().skip(1)) {
            if *page == Page::Images {
                continue;
            }
            let picture = screens::draw(view, &stage::shown(Kind::Oled, page.clone()));
            oled.show(&mono(picture), Light::Full).unwrap();
            assert!(looks_like(&bus, name), "{name} at {address:#x}");
        }
    }
}

#[test]
fn a_display_elsewhere_is_told_by_its_address() {
    let error = Oled::new(Bus::new(0x3c), 0x3d).err().unwrap().to_string();
    assert!(error.contains("0x3d"), "{error}");
}

/// Times at which picture shift and dot position are zero, as in the goldens.
const MOMENTS: [u64; 3] = [256, 512, 768];

#[test]
fn a_box_is_started_claimed_and_left_alone_before_the_glass() {
    let bus = Bus::new(0x3c);
    let mut oled = Oled::new(bus.clone(), 0x3c).unwrap();
    let settings =
        Settings { kind: Kind::Oled, buttons: Buttons::Three, actions: ACTIONS.to_vec() };
    let mut front = Front::new(settings, Duration::ZERO);
    let mut half_seconds = 0;
    let mut until = |front: &mut Front, view: &_, second: u64| {
        while half_seconds < 2 * second {
            half_seconds += 1;
            let now = Duration::from_millis(500 * half_seconds);
            assert_eq!(front.tick(view, now), None);
            if let Some(frame) = front.frame(view, now) {
                oled.show(&mono(frame.picture.clone()), frame.light).unwrap();
            }
        }
        Duration::from_secs(second)
    };
    let (booting, unclaimed) = (example::booting(false), example::unclaimed());
    let calm = example::calm();
    let pages = [(&booting, "boot"), (&unclaimed, "claim"), (&calm, "home-calm")];
    for ((view, name), at) in pages.into_iter().zip(MOMENTS) {
        until(&mut front, view, at - 250);
        assert_eq!(bus.chip.borrow().contrast, 255, "{name} is new");
        until(&mut front, view, at);
        assert!(looks_like(&bus, name), "{name}");
        assert_eq!(bus.chip.borrow().contrast, OLED_DIM, "{name} was there for minutes");
    }
    until(&mut front, &calm, MOMENTS[1] + 599);
    assert!(bus.chip.borrow().on);
    let now = until(&mut front, &calm, MOMENTS[1] + 602);
    assert!(!bus.chip.borrow().on && bus.chip.borrow().memory == [[0; COLUMNS]; PAGES]);
    front.event(Event::Down(Button::Select), &calm, now);
    front.event(Event::Up(Button::Select), &calm, now);
    until(&mut front, &calm, MOMENTS[1] + 603);
    let chip = bus.chip.borrow();
    assert!(chip.on && chip.contrast == 255 && chip.memory != [[0; COLUMNS]; PAGES]);
}

#[test]
fn a_display_that_lost_its_wire_is_started_anew() {
    let bus = Bus::new(0x3c);
    let mut oled = Oled::new(bus.clone(), 0x3c).unwrap();
    let page = |page| mono(screens::draw(&example::calm(), &stage::shown(Kind::Oled, page)));
    oled.show(&page(Page::Home), Light::Full).unwrap();
    *bus.pulled.borrow_mut() = true;
    let error = oled.show(&page(Page::System), Light::Full).unwrap_err().to_string();
    assert!(error.contains("write to the display"), "{error}");
    // The chip returns in its state after power-on.
    *bus.chip.borrow_mut() = Chip::new(0x3c);
    *bus.pulled.borrow_mut() = false;
    let mut oled = Oled::new(bus.clone(), 0x3c).unwrap();
    oled.show(&page(Page::Home), Light::Full).unwrap();
    assert!(looks_like(&bus, "home-calm"));
}
