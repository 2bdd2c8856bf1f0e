//! Devices of a panel, and the data that its screens draw.

use super::{Action, Kind, Light, Page};

/// Button of the panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Button {
    /// Goes back, or up in a list.
    Up,
    /// Goes forward, or down in a list.
    Down,
    /// Confirms the selected entry.
    Select,
}

/// Buttons that the panel has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Buttons {
    /// Three buttons: up, down and select.
    Three,
    /// One button: a short press shows the next page, a long press selects.
    One,
    /// No buttons: pages change automatically.
    #[default]
    None,
}

/// Hardware and permissions of the panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Kind of the screen.
    pub kind: Kind,
    /// Buttons that are present.
    pub buttons: Buttons,
    /// Allowed actions: the setting `panel.actions`.
    pub actions: Vec<Action>,
}

/// Data that a screen needs in addition to the view.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenInput {
    /// Page that is shown.
    pub page: Page,
    /// Kind of the screen.
    pub kind: Kind,
    /// Buttons, whose labels the screen shows.
    pub buttons: Buttons,
    /// Allowed actions: the setting `panel.actions`.
    pub actions: Vec<Action>,
    /// Brightness of the screen.
    pub light: Light,
    /// Seconds for which the button of a long confirmation is held so far.
    pub held_seconds: u64,
    /// Seconds until the open prompt closes.
    pub cancel_seconds: u64,
    /// Position of the walking dot in pixels. The dot moves one pixel per second.
    pub dot: u32,
    /// Offset of the picture, 0 or 1 pixel in each direction, against burn-in.
    pub shift: (i32, i32),
}

impl ScreenInput {
    /// Returns the entries of the menu.
    pub fn menu(&self) -> Vec<Action> {
        menu(&self.actions)
    }
}

/// Returns the entries of the menu, as far as `allowed` has them.
pub fn menu(allowed: &[Action]) -> Vec<Action> {
    let is_entry = |action: &Action| action.in_menu() && allowed.contains(action);
    super::ACTIONS.into_iter().filter(is_entry).collect()
}
