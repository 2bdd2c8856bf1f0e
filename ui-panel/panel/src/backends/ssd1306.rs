//! SSD1306 display of 128×64 pixels on an I²C bus. Only changed pixels are sent.

use std::path::{Path, PathBuf};

use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{OriginDimensions, Point};
use embedded_hal::i2c::I2c;
use linux_embedded_hal::I2cdev;
use ssd1306::mode::{BufferedGraphicsMode, DisplayConfig};
use ssd1306::prelude::{Brightness, DisplayRotation, I2CInterface};
use ssd1306::size::DisplaySize128x64;
use ssd1306::{I2CDisplayInterface, Ssd1306};
use thiserror::Error;

use crate::draw::Sheet;
use crate::model::{Light, OLED_DIM};

/// Errors of a display on an I2C bus.
#[derive(Debug, Error)]
pub enum Error {
    /// The bus could not be opened.
    #[error("could not open the I2C bus {}", path.display())]
    Open {
        /// Path of the bus.
        path: PathBuf,
        /// Error of the operating system.
        source: linux_embedded_hal::i2cdev::linux::LinuxI2CError,
    },
    /// No display responded at the I2C address.
    #[error("could not {what}: no answer from an SSD1306 at address {address:#04x} of the I2C bus")]
    Display {
        /// Verb: `start the display` or `write to the display`.
        what: &'static str,
        /// Address on the bus.
        address: u8,
    },
}

/// Addresses of an SSD1306: its SA0 pin selects one (data sheet, 8.1.5).
pub const ADDRESSES: [u8; 2] = [0x3c, 0x3d];

type Driver<I> =
    Ssd1306<I2CInterface<I>, DisplaySize128x64, BufferedGraphicsMode<DisplaySize128x64>>;

/// SSD1306 display on an I2C bus.
pub struct Oled<I> {
    driver: Driver<I>,
    address: u8,
    shown: Option<Sheet<BinaryColor>>,
    light: Option<Light>,
}

/// Opens the display at one of [`ADDRESSES`] on a bus of this machine: `/dev/i2c-1`.
///
/// # Errors
/// The bus or the display is missing.
pub fn open(path: &Path, address: u8) -> Result<Oled<I2cdev>, Error> {
    let bus = I2cdev::new(path);
    let bus = bus.map_err(|source| Error::Open { path: path.to_owned(), source })?;
    Oled::new(bus, address)
}

impl<I: I2c> Oled<I> {
    /// Initializes the display and switches it on.
    ///
    /// # Errors
    /// The display does not respond.
    pub fn new(bus: I, address: u8) -> Result<Self, Error> {
        let failed = |what| Error::Display { what, address };
        let interface = I2CDisplayInterface::new_custom_address(bus, address);
        let driver = Ssd1306::new(interface, DisplaySize128x64, DisplayRotation::Rotate0);
        let mut driver = driver.into_buffered_graphics_mode();
        driver.init().map_err(|_| failed("start the display"))?;
        driver.flush().map_err(|_| failed("clear the display"))?;
        Ok(Self { driver, address, shown: None, light: None })
    }

    /// Shows a page with this brightness.
    ///
    /// # Errors
    /// The display does not respond; the next call sends the whole page again.
    pub fn show(&mut self, sheet: &Sheet<BinaryColor>, light: Light) -> Result<(), Error> {
        let done = self.send(sheet, light);
        if done.is_err() {
            (self.shown, self.light) = (None, None);
        }
        done
    }

    fn send(&mut self, sheet: &Sheet<BinaryColor>, light: Light) -> Result<(), Error> {
        let address = self.address;
        let failed = |what| Error::Display { what, address };
        self.pixels(sheet);
        self.driver.flush().map_err(|_| failed("write to the display"))?;
        self.shown = Some(sheet.clone());
        if self.light == Some(light) {
            return Ok(());
        }
        let dim = |_| failed("dim the display");
        let brightness = match light {
            Light::Full => Brightness::BRIGHTEST,
            Light::Dim | Light::Off => Brightness::custom(1, OLED_DIM),
        };
        self.driver.set_brightness(brightness).map_err(dim)?;
        self.driver.set_display_on(light != Light::Off).map_err(dim)?;
        self.light = Some(light);
        Ok(())
    }

    /// Passes the changed pixels to the driver, which sends the rectangle around them.
    fn pixels(&mut self, sheet: &Sheet<BinaryColor>) {
        let width = sheet.size().width.max(1);
        let last = self.shown.as_ref().map(Sheet::pixels);
        for (at, color) in sheet.pixels().iter().enumerate() {
            if last.and_then(|last| last.get(at)) == Some(color) {
                continue;
            }
            let (x, y) = (at as u32 % width, at as u32 / width);
            let at = Point::new(x as i32, y as i32);
            self.driver.set_pixel(at.x as u32, at.y as u32, color.is_on());
        }
    }
}
