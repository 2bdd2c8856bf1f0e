//! Brightness of the screen: an OLED wears out where it is lit, so it dims when idle.

use std::time::Duration;

use status::view::problem::Urgency;
use status::view::{StatusView, problems};

use super::{Buttons, Kind};

/// Brightness of a display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    /// The display has full brightness.
    Full,
    /// Enough to read in the dark.
    Dim,
    /// The display is dark.
    Off,
}

/// Time without a reason to look before the screen dims.
pub const DIM_AFTER: Duration = Duration::from_secs(60);
/// Time without a reason to look before an OLED goes dark.
pub const OLED_OFF_AFTER: Duration = Duration::from_mins(10);
/// Time without a reason to look before a backlight goes dark.
pub const TFT_OFF_AFTER: Duration = Duration::from_mins(30);
/// Time for which an unclaimed box shows its code without a break.
pub const UNCLAIMED_ON: Duration = Duration::from_mins(60);
/// Part of each minute for which the screen is on after that.
pub const GLIMPSE: Duration = Duration::from_secs(10);

/// Value of an OLED's contrast register when dim, from 0 to 255.
pub const OLED_DIM: u8 = 26;
/// Brightness of a dim backlight, in percent.
pub const TFT_DIM_PERCENT: u8 = 20;

/// Brightness after `idle` without an event.
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
