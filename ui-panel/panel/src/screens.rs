//! Pages as pictures. All screens show the same view, as far as their space allows.

pub mod monitor;
pub mod oled;
pub mod tft;

use embedded_graphics::pixelcolor::{BinaryColor, Rgb565};
pub use embedded_graphics::prelude::Size;
use status::view::problem::Urgency;
use status::view::{Role, StatusView, Update, UpdateState};

use crate::draw::Sheet;
use crate::model::{Kind, Page, ScreenInput, find};

/// Drawn page of the panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Picture {
    /// A monochrome page, for an OLED.
    Mono(Sheet<BinaryColor>),
    /// A color page, for a TFT.
    Color(Sheet<Rgb565>),
}

/// Draws the current page of the panel.
pub fn draw(view: &StatusView, shown: &ScreenInput) -> Picture {
    match shown.kind {
        Kind::Oled => Picture::Mono(oled::draw(view, shown)),
        Kind::Tft => Picture::Color(tft::draw(view, shown)),
    }
}

/// Returns the page number: `2/6`; `!/6` for a problem of the whole box; else empty.
fn number(view: &StatusView, shown: &ScreenInput) -> String {
    let count = Page::round(shown.kind, view).len();
    let urgency = match &shown.page {
        Page::Problem(key) => find(view, key).map(|problem| problem.urgency),
        _ => None,
    };
    match (urgency, shown.page.place(shown.kind, view)) {
        (Some(Urgency::Box), _) => format!("!/{count}"),
        (_, Some(place)) => format!("{}/{count}", place + 1),
        (_, None) => String::new(),
    }
}

/// Formats the pin in two lines, such as `F3A9 1C20` and `8BQK 77TM`.
fn pin_lines(pin: &str) -> [String; 2] {
    let groups: Vec<&str> = pin.split('-').collect();
    let (first, second) = groups.split_at(groups.len().min(2));
    [first.join(" "), second.join(" ")]
}

/// Formats a number with its noun, such as `1 machine` or `12 machines`.
fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Returns the state of an update, in words.
fn update_step(update: &Update) -> String {
    match update.state {
        UpdateState::Verified => format!("writing slot {}", update.slot),
        state => state.words().to_owned(),
    }
}

/// Returns a text about the interface without an address, with the time of the wait.
fn waiting(view: &StatusView) -> String {
    let person = view.nics.iter().find(|nic| nic.role != Role::Provisioning);
    match person.or_else(|| view.nics.first()) {
        None => "no network port was found".to_owned(),
        Some(nic) if nic.link_mbps.is_none() => format!("plug a cable into {}", nic.name),
        Some(nic) => {
            let since = nic.link_since.map_or(0, |at| view.now.duration_since(at).as_secs());
            format!("waiting for an address on {} … {} s", nic.name, since.max(0))
        }
    }
}
