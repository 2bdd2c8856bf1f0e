//! The monitor and its keyboard: tabs on function keys, without a shell. A pure state machine of
//! keys; [`crate::screens::monitor`] draws it.

use std::time::Duration;

use status::view::{Machine, StatusView};

use crate::model::{Action, CANCEL_AFTER, PanelOrder, SECRET_FOR};

/// Maximum characters of a filter.
const FILTER_CHARS_MAX: usize = 40;
/// Maximum characters of a box's name (RFC 1123 section 2.1).
const NAME_CHARS_MAX: usize = 63;
/// Actions of the F12 menu, by the key that chooses each.
pub const LEAVING: [(char, Action); 4] = [
    ('r', Action::Restart),
    ('p', Action::PowerOff),
    ('s', Action::SafeMode),
    ('e', Action::FactoryReset),
];

/// A key of the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A function key, F1 to F12.
    Function(u8),
    /// A key of a printable character.
    Char(char),
    /// The cursor key up.
    Up,
    /// The cursor key down.
    Down,
    /// The key Enter: confirms.
    Enter,
    /// The key Escape: goes back.
    Escape,
    /// The key Backspace: deletes the last character.
    Backspace,
}

/// A tab of the monitor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// Summary of the box's health and of work in progress.
    #[default]
    Now,
    /// List of all machines.
    Machines,
    /// List of all networks.
    Network,
    /// Log of the box.
    Logs,
    /// State of the box.
    Box,
}

/// The tabs and their keys.
pub const TABS: [(u8, Tab, &str); 5] = [
    (1, Tab::Now, "Now"),
    (2, Tab::Machines, "Machines"),
    (3, Tab::Network, "Network"),
    (4, Tab::Logs, "Logs"),
    (5, Tab::Box, "Box"),
];

/// Prompt before the erasure of the box, which the user confirms by typing the box's name. A key
/// that is held by accident cannot confirm it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasePrompt {
    /// Text typed so far.
    pub typed: String,
    /// Time of the prompt, on the steady clock.
    pub since: Duration,
}

impl ErasePrompt {
    /// Seconds until the prompt is withdrawn; `None` after that.
    pub fn seconds(&self, now: Duration) -> Option<u64> {
        let left = CANCEL_AFTER.checked_sub(now.saturating_sub(self.since))?;
        (!left.is_zero()).then(|| left.as_millis().div_ceil(1000) as u64)
    }
}

/// Confirmation prompt of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmation {
    /// Action that waits for confirmation.
    pub action: Action,
    /// Time of the prompt, on the steady clock.
    pub since: Duration,
}

impl Confirmation {
    /// The action, unless the prompt is withdrawn.
    pub fn action(&self, now: Duration) -> Option<Action> {
        (now.saturating_sub(self.since) < CANCEL_AFTER).then_some(self.action)
    }
}

/// State of the keyboard console.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Console {
    /// Tab that is shown.
    pub tab: Tab,
    /// Name of the machine under the cursor; empty for the first one.
    pub cursor: String,
    /// True while the history of the selected machine is open.
    pub story: bool,
    /// Time at which a person requested the pin of a claimed box, on the steady clock.
    pub secret: Option<Duration>,
    /// True to show only the log's warnings.
    pub warnings: bool,
    /// Text that shown names must contain.
    pub filter: String,
    /// True while the filter is being typed.
    pub typing: bool,
    /// Open confirmation prompt, if any.
    pub asking: Option<Confirmation>,
    /// Open prompt before the erasure of the box, if any.
    pub erasing: Option<ErasePrompt>,
    /// Actions that the configuration allows.
    pub actions: Vec<Action>,
}

impl Console {
    /// A console that allows `actions`.
    pub fn new(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// The machines that match the filter.
    pub fn machines<'a>(&self, view: &'a StatusView) -> Vec<&'a Machine> {
        let fits = |machine: &&Machine| {
            let status = machine.status().to_lowercase();
            machine.name.contains(&self.filter) || status.contains(&self.filter)
        };
        view.machines.iter().filter(fits).collect()
    }

    /// The machine under the cursor.
    pub fn chosen<'a>(&self, view: &'a StatusView) -> Option<&'a Machine> {
        let machines = self.machines(view);
        let named = machines.iter().find(|machine| machine.name.as_str() == self.cursor);
        named.or(machines.first()).copied()
    }

    /// True while the pin of a claimed box is shown.
    pub fn shows_pin(&self, now: Duration) -> bool {
        self.secret.is_some_and(|asked| now.saturating_sub(asked) < SECRET_FOR)
    }

    /// Handles a pressed key.
    pub fn key(&mut self, key: Key, view: &StatusView, now: Duration) -> Option<PanelOrder> {
        if let Some(erasing) = self.erasing.take() {
            return self.erase(erasing, key, view, now);
        }
        if let Some(asking) = self.asking.take() {
            // A key after the timeout of the prompt does not confirm it.
            return asking.action(now).and_then(|action| self.asked(action, key, now));
        }
        if self.typing && self.typed(key) {
            return None;
        }
        match key {
            Key::Function(number) => return self.function(number, now),
            Key::Char('q') => self.secret = if self.shows_pin(now) { None } else { Some(now) },
            Key::Char('/') if self.tab == Tab::Machines => {
                self.typing = true;
                self.story = false;
            }
            Key::Char('w') if self.tab == Tab::Logs => self.warnings = !self.warnings,
            Key::Char('r') if self.tab == Tab::Machines => {
                let failed = self.chosen(view).filter(|machine| machine.needs_person())?;
                let machine = Some(failed.name.to_string());
                let allowed = self.actions.contains(&Action::Retry);
                return allowed.then_some(PanelOrder { action: Action::Retry, machine });
            }
            Key::Enter if self.tab == Tab::Machines => self.story = self.chosen(view).is_some(),
            Key::Up => self.move_cursor(view, -1),
            Key::Down => self.move_cursor(view, 1),
            Key::Escape if self.story => self.story = false,
            Key::Escape => self.filter.clear(),
            _ => {}
        }
        None
    }

    /// Handles a key at an open prompt: yes, another action, or no.
    fn asked(&mut self, action: Action, key: Key, now: Duration) -> Option<PanelOrder> {
        if key == Key::Enter {
            return self.actions.contains(&action).then_some(PanelOrder { action, machine: None });
        }
        let chosen = LEAVING.into_iter().find(|(char, _)| key == Key::Char(*char));
        let (_, action) = chosen.filter(|(_, action)| self.actions.contains(action))?;
        if action == Action::FactoryReset {
            self.erasing = Some(ErasePrompt { typed: String::new(), since: now });
        } else {
            self.asking = Some(Confirmation { action, since: now });
        }
        None
    }

    /// Takes a key of the typed name that confirms the erasure. A wrong name ends the prompt.
    fn erase(
        &mut self,
        mut erasing: ErasePrompt,
        key: Key,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        erasing.seconds(now)?;
        match key {
            Key::Char(char) if erasing.typed.chars().count() < NAME_CHARS_MAX => {
                erasing.typed.push(char);
            }
            Key::Char(_) => {}
            Key::Backspace => drop(erasing.typed.pop()),
            Key::Enter => {
                let action = Action::FactoryReset;
                let meant = erasing.typed == view.name.to_lowercase();
                let may = meant && self.actions.contains(&action);
                return may.then_some(PanelOrder { action, machine: None });
            }
            _ => return None,
        }
        self.erasing = Some(erasing);
        None
    }

    /// Handles a key of the filter; `false` if the key is not part of it.
    fn typed(&mut self, key: Key) -> bool {
        match key {
            Key::Char(char) if self.filter.chars().count() < FILTER_CHARS_MAX => {
                self.filter.push(char);
            }
            Key::Char(_) => {}
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            Key::Function(_) | Key::Up | Key::Down => {
                self.typing = false;
                return false;
            }
        }
        true
    }

    fn function(&mut self, number: u8, now: Duration) -> Option<PanelOrder> {
        if let Some((_, tab, _)) = TABS.into_iter().find(|(key, ..)| *key == number) {
            self.tab = tab;
            self.story = false;
            return None;
        }
        match number {
            8 if self.actions.contains(&Action::Support) => {
                Some(PanelOrder { action: Action::Support, machine: None })
            }
            12 if self.actions.contains(&Action::Restart) => {
                self.asking = Some(Confirmation { action: Action::Restart, since: now });
                None
            }
            _ => None,
        }
    }

    fn move_cursor(&mut self, view: &StatusView, by: isize) {
        let machines = self.machines(view);
        let here = self.chosen(view).map(|machine| &machine.name);
        let at = machines.iter().position(|machine| Some(&machine.name) == here).unwrap_or(0);
        let last = machines.len().saturating_sub(1);
        if let Some(machine) = machines.get(at.saturating_add_signed(by).min(last)) {
            self.cursor = machine.name.to_string();
        }
    }
}

#[cfg(test)]
mod tests;
