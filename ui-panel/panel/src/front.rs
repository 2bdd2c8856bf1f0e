//! Logic of a small screen: takes button events and views, and returns orders and frames. Pure,
//! like the pages: the caller brings the time.

use std::time::Duration;

use embedded_graphics::pixelcolor::{BinaryColor, Rgb565};
use embedded_graphics::prelude::{RgbColor, Size};
use status::view::StatusView;

use crate::backends::PICTURE_EVERY;
use crate::draw::Sheet;
use crate::model::{Button, Kind, Light, Panel, PanelOrder, Settings};
use crate::screens::{Picture, draw, oled, tft};

/// An event of the buttons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The button was pressed.
    Down(Button),
    /// The button was released.
    Up(Button),
    /// Events were lost: the state of the buttons is unknown.
    Lost,
}

/// A frame to show on the display.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The page; of a screen that is dark, nothing.
    pub picture: Picture,
    /// Brightness of the display.
    pub light: Light,
}

/// A small screen and its buttons.
#[derive(Debug)]
pub struct Front {
    panel: Panel,
    kind: Kind,
    last: Option<(Frame, Duration)>,
}

impl Front {
    /// One that has shown nothing yet.
    pub fn new(settings: Settings, now: Duration) -> Self {
        Self { kind: settings.kind, panel: Panel::new(settings, now), last: None }
    }

    /// Something happened to the buttons.
    pub fn event(&mut self, event: Event, view: &StatusView, now: Duration) -> Option<PanelOrder> {
        // What was held until now is judged before what comes next.
        let held = self.panel.tick(view, now);
        let given = match event {
            Event::Down(button) => {
                self.panel.press(button, view, now);
                None
            }
            Event::Up(button) => self.panel.release(button, view, now),
            Event::Lost => {
                self.panel.let_go();
                None
            }
        };
        held.or(given)
    }

    /// Time went by, or the view changed.
    pub fn tick(&mut self, view: &StatusView, now: Duration) -> Option<PanelOrder> {
        self.panel.tick(view, now)
    }

    /// Next frame, if it differs from the last one; at most two per second. The caller shows it.
    pub fn frame(&mut self, view: &StatusView, now: Duration) -> Option<&Frame> {
        let soon = |(_, at): &(Frame, Duration)| now.saturating_sub(*at) < PICTURE_EVERY;
        if self.last.as_ref().is_some_and(soon) {
            return None;
        }
        let shown = self.panel.shown(view, now);
        let picture = match shown.light {
            // A dark screen keeps no pin, and its walking dot walks for nobody.
            Light::Off => blank(self.kind),
            Light::Full | Light::Dim => draw(view, &shown),
        };
        let frame = Frame { picture, light: shown.light };
        if self.last.as_ref().is_some_and(|(last, _)| *last == frame) {
            return None;
        }
        let (frame, _) = self.last.insert((frame, now));
        Some(frame)
    }
}

fn blank(kind: Kind) -> Picture {
    match kind {
        Kind::Oled => {
            Picture::Mono(Sheet::new(Size::new(oled::WIDTH, oled::HEIGHT), BinaryColor::Off))
        }
        Kind::Tft => Picture::Color(Sheet::new(Size::new(tft::WIDTH, tft::HEIGHT), Rgb565::BLACK)),
    }
}

#[cfg(test)]
mod tests;
