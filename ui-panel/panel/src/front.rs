//! Logic of a small screen: input are button events and views, output are orders and frames. No I/O
//! and no clock: the caller passes the time.

use std::time::Duration;

use embedded_graphics::pixelcolor::{BinaryColor, Rgb565};
use embedded_graphics::prelude::{RgbColor, Size};
use status::view::StatusView;

use crate::backends::PICTURE_EVERY;
use crate::draw::Sheet;
use crate::model::{Button, Kind, Light, Panel, PanelOrder, Settings};
use crate::screens::{Picture, draw, oled, tft};

/// Event of the buttons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The button was pressed.
    Down(Button),
    /// The button was released.
    Up(Button),
    /// Events were lost: the state of the buttons is unknown.
    Lost,
}

/// Frame to show on the display.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Picture of the page; blank for a dark screen.
    pub picture: Picture,
    /// Brightness of the display.
    pub light: Light,
}

/// Small screen with its buttons.
#[derive(Debug)]
pub struct Front {
    panel: Panel,
    kind: Kind,
    last: Option<(Frame, Duration)>,
}

impl Front {
    /// Creates a screen that has shown no frame yet.
    pub fn new(settings: Settings, now: Duration) -> Self {
        Self { kind: settings.kind, panel: Panel::new(settings, now), last: None }
    }

    /// Handles an event of the buttons. Returns the order that the event gives, if any.
    pub fn event(&mut self, event: Event, view: &StatusView, now: Duration) -> Option<PanelOrder> {
        // A hold until now takes effect before this event.
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

    /// Handles elapsed time or a changed view. Returns an order if a hold has taken effect.
    pub fn tick(&mut self, view: &StatusView, now: Duration) -> Option<PanelOrder> {
        self.panel.tick(view, now)
    }

    /// Shows why an order was not carried out.
    pub fn report(&mut self, reason: String, now: Duration) {
        self.panel.report(reason, now);
    }

    /// Returns the next frame to show; `None` without a change, or within 500 ms of the last.
    pub fn frame(&mut self, view: &StatusView, now: Duration) -> Option<&Frame> {
        let soon = |(_, at): &(Frame, Duration)| now.saturating_sub(*at) < PICTURE_EVERY;
        if self.last.as_ref().is_some_and(soon) {
            return None;
        }
        let shown = self.panel.shown(view, now);
        let picture = match shown.light {
            // A dark screen shows no pin and no moving dot.
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
