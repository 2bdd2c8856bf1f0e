//! State machine of the monitor and its keyboard: tabs on function keys, without a shell. No I/O;
//! [`crate::screens::monitor`] draws the state.

use std::time::Duration;

use machine_actions::Confirmation;
use status::view::{Machine, StatusView};

use crate::model::{Action, CANCEL_AFTER, MachineAction, PanelOrder, SECRET_FOR, permitted};

/// Maximum length of a filter, in characters.
const FILTER_CHARS_MAX: usize = 40;
/// Maximum length of a typed name, in characters: names of machines are DNS subdomains (RFC 1123
/// section 2.1).
const NAME_CHARS_MAX: usize = 253;
/// Time for which the outcome of an order is shown.
pub const OUTCOME_FOR: Duration = Duration::from_secs(30);
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

/// Confirmation prompt of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Order that waits for confirmation.
    pub order: PanelOrder,
    /// Name that the user must type, so that a key held by accident cannot confirm; empty if the
    /// key Enter is enough.
    pub name: String,
    /// Text typed so far.
    pub typed: String,
    /// Time at which the prompt opened, on the monotonic clock.
    pub since: Duration,
}

impl Prompt {
    /// Creates a prompt that the key Enter confirms.
    pub fn new(order: PanelOrder, since: Duration) -> Self {
        Self { order, name: String::new(), typed: String::new(), since }
    }

    /// Creates a prompt that the typed name confirms. The keyboard has no capital letters.
    pub fn with_name(order: PanelOrder, name: &str, since: Duration) -> Self {
        Self { name: name.to_lowercase(), ..Self::new(order, since) }
    }

    /// Returns the seconds until the prompt closes without an answer; `None` if it has closed.
    pub fn seconds(&self, now: Duration) -> Option<u64> {
        let left = CANCEL_AFTER.checked_sub(now.saturating_sub(self.since))?;
        (!left.is_zero()).then(|| left.as_millis().div_ceil(1000) as u64)
    }
}

/// Outcome of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The order was carried out; with a sentence about it.
    Done(String),
    /// The order was not carried out; with the reason.
    Refused(String),
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
    pub prompt: Option<Prompt>,
    /// Outcome of the last order, and its time on the monotonic clock.
    pub outcome: Option<(Outcome, Duration)>,
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
        self.outcome = None;
        if let Some(prompt) = self.prompt.take() {
            // A key after the timeout of the prompt does not confirm it.
            prompt.seconds(now)?;
            if prompt.name.is_empty() {
                return self.answer(prompt.order, key, view, now);
            }
            return self.type_name(prompt, key, view);
        }
        if self.typing && self.typed(key) {
            return None;
        }
        match key {
            Key::Function(number) => self.function(number, now),
            Key::Char('q') => self.secret = if self.shows_pin(now) { None } else { Some(now) },
            Key::Char('/') if self.tab == Tab::Machines => {
                self.typing = true;
                self.story = false;
            }
            Key::Char('w') if self.tab == Tab::Logs => self.warnings = !self.warnings,
            Key::Char(char) if self.tab == Tab::Machines => {
                return self.machine_key(char, view, now);
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

    /// Returns the actions of the machine under the cursor that have a key.
    pub fn machine_actions(&self, view: &StatusView) -> Vec<(char, MachineAction)> {
        let Some(machine) = self.chosen(view) else { return Vec::new() };
        let actions = permitted(machine, &self.actions).into_iter();
        actions.filter_map(|action| Some((action.key()?, action))).collect()
    }

    /// Handles the key of an action on the machine under the cursor.
    fn machine_key(&mut self, char: char, view: &StatusView, now: Duration) -> Option<PanelOrder> {
        let actions = self.machine_actions(view);
        let (_, action) = actions.into_iter().find(|(key, _)| *key == char)?;
        let machine = self.chosen(view)?;
        let order = PanelOrder::Machine(action.order(machine));
        self.prompt = Some(match action.confirmation(machine) {
            Confirmation::Name => Prompt::with_name(order, &machine.name, now),
            Confirmation::None => return Some(order),
            Confirmation::Effect | Confirmation::Form => Prompt::new(order, now),
        });
        None
    }

    /// Handles a key at a prompt: Enter confirms, a menu key changes the action, others cancel.
    fn answer(
        &mut self,
        order: PanelOrder,
        key: Key,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        if key == Key::Enter {
            return stands(&order, view).then_some(order);
        }
        if matches!(order, PanelOrder::Machine(_)) {
            return None;
        }
        let chosen = LEAVING.into_iter().find(|(char, _)| key == Key::Char(*char));
        let (_, action) = chosen.filter(|(_, action)| self.actions.contains(action))?;
        let order = PanelOrder::Box(action);
        self.prompt = Some(match action {
            Action::FactoryReset => Prompt::with_name(order, &view.name, now),
            _ => Prompt::new(order, now),
        });
        None
    }

    /// Handles a key of a prompt for a name. A wrong name closes the prompt.
    fn type_name(&mut self, mut prompt: Prompt, key: Key, view: &StatusView) -> Option<PanelOrder> {
        match key {
            Key::Char(char) if prompt.typed.chars().count() < NAME_CHARS_MAX => {
                prompt.typed.push(char);
            }
            Key::Char(_) => {}
            Key::Backspace => drop(prompt.typed.pop()),
            Key::Enter => {
                let meant = prompt.typed == prompt.name && stands(&prompt.order, view);
                return meant.then_some(prompt.order);
            }
            _ => return None,
        }
        self.prompt = Some(prompt);
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

    fn function(&mut self, number: u8, now: Duration) {
        if let Some((_, tab, _)) = TABS.into_iter().find(|(key, ..)| *key == number) {
            self.tab = tab;
            self.story = false;
            return;
        }
        match number {
            12 if self.actions.contains(&Action::Restart) => {
                self.prompt = Some(Prompt::new(PanelOrder::Box(Action::Restart), now));
            }
            _ => {}
        }
    }

    /// Shows that an order was carried out.
    pub fn confirm(&mut self, order: &PanelOrder, now: Duration) {
        let done = order.done();
        self.outcome = (!done.is_empty()).then_some((Outcome::Done(done), now));
    }

    /// Shows why an order was not carried out.
    pub fn refuse(&mut self, reason: String, now: Duration) {
        self.outcome = Some((Outcome::Refused(reason), now));
    }

    /// Returns the outcome of the last order, for [`OUTCOME_FOR`].
    pub fn outcome(&self, now: Duration) -> Option<&Outcome> {
        let (outcome, at) = self.outcome.as_ref()?;
        (now.saturating_sub(*at) < OUTCOME_FOR).then_some(outcome)
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

/// Returns true if the order is still possible: the view may have changed since the prompt.
fn stands(order: &PanelOrder, view: &StatusView) -> bool {
    match order {
        PanelOrder::Box(_) => true,
        PanelOrder::Machine(order) => order.confirmation(view).is_some(),
    }
}

#[cfg(test)]
mod tests;
