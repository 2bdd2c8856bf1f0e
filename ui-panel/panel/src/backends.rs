//! Output of a picture to hardware, and to a file.

pub mod backlight;
pub mod fbdev;
pub mod png;
pub mod ssd1306;

use std::time::Duration;

/// Minimum time from one picture to the next.
pub const PICTURE_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
