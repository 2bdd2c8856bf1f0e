//! Brightness of the screen. Lit pixels of an OLED wear out, so an idle screen dims.

use std::time::Duration;

use status::view::problem::Urgency;
use status::view::{StatusView, problems};

use super::{Buttons, Kind};

/// Brightness of a display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    /// The display has full brightness.
    Full,
    /// The display is dimmed, but readable in the dark.
    Dim,
    /// The display is dark.
    Off,
}

/// Idle time after which the screen dims.
pub const DIM_AFTER: Duration = Duration::from_secs(60);
/// Idle time after which an OLED switches off.
pub const OLED_OFF_AFTER: Duration = Duration::from_mins(10);
/// Idle time after which a backlight switches off.
pub const TFT_OFF_AFTER: Duration = Duration::from_mins(30);
/// Idle time after which the screen of an unclaimed box switches off.
pub const UNCLAIMED_ON: Duration = Duration::from_mins(60);
/// Part of each minute for which a dark screen is on: of an unclaimed box, or without buttons.
pub const GLIMPSE: Duration = Duration::from_secs(10);

/// Contrast register of a dimmed OLED, from 0 to 255.
pub const OLED_DIM: u8 = 26;
/// Brightness of a dimmed backlight, in percent.
pub const TFT_DIM_PERCENT: u8 = 20;

/// Returns the brightness after the time `idle` without an event.
pub fn light(kind: Kind, buttons: Buttons, view: &StatusView, idle: Duration) -> Light {
    if idle < DIM_AFTER {
        return Light::Full;
    }
    let updates = view.update.as_ref().is_some_and(|update| update.state.under_way());
    if view.starting().is_some() || updates {
        return Light::Dim;
    }
    let dark = match kind {
        _ if view.claim.is_some() => UNCLAIMED_ON,
        Kind::Oled => OLED_OFF_AFTER,
        Kind::Tft if urgent(view) => return Light::Dim,
        Kind::Tft => TFT_OFF_AFTER,
    };
    let glimpse = idle.as_secs() % 60 < GLIMPSE.as_secs();
    match idle < dark {
        true => Light::Dim,
        // Without a button no user can wake the screen, so it never stays dark.
        false if glimpse && (view.claim.is_some() || buttons == Buttons::None) => Light::Dim,
        false => Light::Off,
    }
}

fn urgent(view: &StatusView) -> bool {
    problems(view).first().is_some_and(|problem| problem.urgency != Urgency::Notice)
}
