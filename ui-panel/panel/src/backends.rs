//! Outputs a picture to hardware or to a file.

pub mod backlight;
pub mod fbdev;
pub mod png;
pub mod ssd1306;

use std::time::Duration;

/// Minimum time between two pictures.
pub const PICTURE_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
