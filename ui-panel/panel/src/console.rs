//! State machine of the monitor and its keyboard: tabs on function keys, without a shell. No I/O;
//! [`crate::screens::monitor`] draws the state.

use std::time::Duration;

use status::view::{Machine, StatusView};

use crate::model::{Action, CANCEL_AFTER, PanelOrder, SECRET_FOR};

/// Maximum length of a filter, in characters.
const FILTER_CHARS_MAX: usize = 40;
/// Maximum length of a box's name, in characters (RFC 1123 section 2.1).
const NAME_CHARS_MAX: usize = 63;
/// Actions of the F12 menu, each with its key.
pub const LEAVING: [(char, Action); 4] = [
    ('r', Action::Restart),
    ('p', Action::PowerOff),
    ('s', Action::SafeMode),
    ('e', Action::FactoryReset),
];

/// Key of the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// Function key, by its number: 1 to 12.
    Function(u8),
    /// Key of a printable character.
    Char(char),
    /// Cursor key up: previous entry.
    Up,
    /// Cursor key down: next entry.
    Down,
    /// Key Enter: confirms the entry.
    Enter,
    /// Key Escape: goes back.
    Escape,
    /// Key Backspace: deletes the last character.
    Backspace,
}

/// Tab of the monitor.
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

/// Tabs in their order: number of the function key, tab, label.
pub const TABS: [(u8, Tab, &str); 5] = [
    (1, Tab::Now, "Now"),
    (2, Tab::Machines, "Machines"),
    (3, Tab::Network, "Network"),
    (4, Tab::Logs, "Logs"),
    (5, Tab::Box, "Box"),
];

/// Prompt before a factory reset. The user must type the box's name, so that a key held by accident
/// cannot confirm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasePrompt {
    /// Text typed so far.
    pub typed: String,
    /// Time at which the prompt opened, on the monotonic clock.
    pub since: Duration,
}

impl ErasePrompt {
    /// Returns the seconds until the prompt closes without an answer; `None` if it has closed.
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
    /// Time at which the prompt opened, on the monotonic clock.
    pub since: Duration,
}

impl Confirmation {
    /// Returns the action; `None` if the prompt has closed without an answer.
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
    /// True if the history of the selected machine is open.
    pub story: bool,
    /// Time at which a person requested the pin of a claimed box, on the monotonic clock.
    pub secret: Option<Duration>,
    /// True to show only the warnings of the log.
    pub warnings: bool,
    /// Filter text: machines are shown if their name or status contains the text.
    pub filter: String,
    /// True if key presses go to the filter.
    pub typing: bool,
    /// Open confirmation prompt, if any.
    pub asking: Option<Confirmation>,
    /// Open prompt before a factory reset, if any.
    pub erasing: Option<ErasePrompt>,
    /// Actions that the configuration allows (`panel.actions`).
    pub actions: Vec<Action>,
}

impl Console {
    /// Creates a console that allows `actions`.
    pub fn new(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// Returns the machines that match the filter.
    pub fn machines<'a>(&self, view: &'a StatusView) -> Vec<&'a Machine> {
        let fits = |machine: &&Machine| {
            let status = machine.status().to_lowercase();
            machine.name.contains(&self.filter) || status.contains(&self.filter)
        };
        view.machines.iter().filter(fits).collect()
    }

    /// Returns the machine under the cursor, else the first machine; `None` without machines.
    pub fn chosen<'a>(&self, view: &'a StatusView) -> Option<&'a Machine> {
        let machines = self.machines(view);
        let named = machines.iter().find(|machine| machine.name.as_str() == self.cursor);
        named.or(machines.first()).copied()
    }

    /// Returns true if the pin of a claimed box is shown at `now`.
    pub fn shows_pin(&self, now: Duration) -> bool {
        self.secret.is_some_and(|asked| now.saturating_sub(asked) < SECRET_FOR)
    }

    /// Handles a pressed key. Returns the order that the key gives, if any.
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

    /// Handles a key at a prompt: Enter confirms, a menu key changes the action, others cancel.
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

    /// Handles a key of the prompt before a factory reset. A wrong name closes the prompt.
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

    /// Handles a key of the filter. Returns false if the filter does not use the key.
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
