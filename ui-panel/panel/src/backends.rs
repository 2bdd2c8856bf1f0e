//! A picture onto hardware, and into a file.

pub mod fbdev;
pub mod png;
pub mod ssd1306;

use std::time::Duration;

use crate::screens::Picture;

/// Shortest time from one picture to the next.
pub const PICTURE_EVERY: Duration = Duration::from_millis(500);

/// Lets a picture through when it differs from the one before, at most twice a second.
#[derive(Debug, Default)]
pub struct Redraw {
    last: Option<(Picture, Duration)>,
}

impl Redraw {
    /// It is time to draw.
    pub fn due(&self, now: Duration) -> bool {
        let after = |(_, at): &(Picture, Duration)| now.saturating_sub(*at) >= PICTURE_EVERY;
        self.last.as_ref().is_none_or(after)
    }

    /// The picture, if the screen does not show it already.
    pub fn changed(&mut self, picture: Picture, now: Duration) -> Option<&Picture> {
        let same = self.last.as_ref().is_some_and(|(last, _)| *last == picture);
        let (last, _) = self.last.insert((picture, now));
        (!same).then_some(last)
    }
}

#[cfg(test)]
mod tests;
