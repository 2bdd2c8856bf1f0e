//! Backlight of a TFT, controlled by `/sys/class/backlight`.

use std::fs;
use std::path::{Path, PathBuf};

use super::fbdev::Error;
use crate::model::{Light, TFT_DIM_PERCENT};

/// Backlight of a display.
#[derive(Debug)]
pub struct Backlight {
    brightness: PathBuf,
    most: u32,
    light: Option<Light>,
}

impl Backlight {
    /// Opens the backlight of this folder: `/sys/class/backlight/NAME`.
    ///
    /// # Errors
    /// The backlight does not exist, or its maximum brightness is not readable.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("max_brightness");
        let read = fs::read_to_string(&path);
        let text = read.map_err(|source| {
            let path = path.clone();
            Error::File { what: "read", path, source }
        })?;
        let text = text.trim().to_owned();
        let most = text.parse().ok().filter(|most| *most > 0);
        let most = most.ok_or(Error::Text { path, text, wanted: "brightness of 1 and more" })?;
        Ok(Self { brightness: folder.join("brightness"), most, light: None })
    }

    /// Sets the brightness. Dim is [`TFT_DIM_PERCENT`] of the maximum, and never zero.
    ///
    /// # Errors
    /// The kernel refuses the value.
    pub fn set(&mut self, light: Light) -> Result<(), Error> {
        if self.light == Some(light) {
            return Ok(());
        }
        let level = match light {
            Light::Full => self.most,
            Light::Dim => (u64::from(self.most) * u64::from(TFT_DIM_PERCENT) / 100).max(1) as u32,
            Light::Off => 0,
        };
        let path = || self.brightness.clone();
        fs::write(&self.brightness, level.to_string()).map_err(|source| Error::File {
            what: "write to",
            path: path(),
            source,
        })?;
        self.light = Some(light);
        Ok(())
    }
}
