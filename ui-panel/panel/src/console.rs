//! The monitor and its keyboard: tabs on function keys, no shell behind any of them. A pure machine
//! of keys; [`crate::screens::monitor`] draws it.

use std::time::Duration;

use status::view::{Machine, StatusView};

use crate::model::{Action, Order, SECRET_FOR};

/// Characters of a filter.
const FILTER_CHARS_MAX: usize = 40;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// F1 to F12.
    Function(u8),
    /// A character.
    Char(char),
    /// Up.
    Up,
    /// Down.
    Down,
    /// Do it.
    Enter,
    /// Back.
    Escape,
    /// Take the last character back.
    Backspace,
}

/// What the monitor shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// Is all well? What happens?
    #[default]
    Now,
    /// Every machine.
    Machines,
    /// Every interface.
    Network,
    /// The box's log.
    Logs,
    /// The box.
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

/// The console.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Console {
    /// What it shows.
    pub tab: Tab,
    /// The machine under the cursor, by name; empty: the first.
    pub cursor: String,
    /// That machine's story is open.
    pub story: bool,
    /// When somebody asked for the pin of a box that has an owner, on the steady clock.
    pub secret: Option<Duration>,
    /// The log's warnings alone.
    pub warnings: bool,
    /// What names must contain.
    pub filter: String,
    /// The filter is being typed.
    pub typing: bool,
    /// Is it meant?
    pub asking: Option<Action>,
    /// What it may do.
    pub actions: Vec<Action>,
}

impl Console {
    /// A console that may do `actions`.
    pub fn new(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// The machines that the filter leaves.
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

    /// The pin is shown although the box has an owner.
    pub fn shows_pin(&self, now: Duration) -> bool {
        self.secret.is_some_and(|asked| now.saturating_sub(asked) < SECRET_FOR)
    }

    /// A key went down.
    pub fn key(&mut self, key: Key, view: &StatusView, now: Duration) -> Option<Order> {
        if let Some(action) = self.asking.take() {
            let meant = key == Key::Enter && self.actions.contains(&action);
            return meant.then_some(Order { action, machine: None });
        }
        if self.typing && self.typed(key) {
            return None;
        }
        match key {
            Key::Function(number) => return self.function(number),
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
                return allowed.then_some(Order { action: Action::Retry, machine });
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

    /// A key of the filter; `false`: it is not one.
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

    fn function(&mut self, number: u8) -> Option<Order> {
        if let Some((_, tab, _)) = TABS.into_iter().find(|(key, ..)| *key == number) {
            self.tab = tab;
            self.story = false;
            return None;
        }
        match number {
            8 if self.actions.contains(&Action::Support) => {
                Some(Order { action: Action::Support, machine: None })
            }
            12 if self.actions.contains(&Action::Restart) => {
                self.asking = Some(Action::Restart);
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
mod tests {
    use super::{Console, Key, Tab};
    use crate::model::{ACTIONS, Action};
    use status::view::example;
    use std::time::Duration;

    #[test]
    fn keys_walk_through_the_machines() {
        let view = example::working();
        let mut console = Console::new(ACTIONS.to_vec());
        let press = |console: &mut Console, keys: &[Key]| {
            keys.iter()
                .filter_map(|key| console.key(*key, &view, Duration::ZERO))
                .collect::<Vec<_>>()
        };
        press(&mut console, &[Key::Function(2), Key::Down, Key::Down, Key::Up]);
        assert_eq!((console.tab, console.cursor.as_str()), (Tab::Machines, "nuc-02"));
        press(&mut console, &[Key::Char('/'), Key::Char('f'), Key::Char('a'), Key::Enter]);
        assert_eq!(console.machines(&view).len(), 1);
        assert_eq!(console.chosen(&view).unwrap().name.as_str(), "nuc-07");
        let orders = press(&mut console, &[Key::Enter, Key::Char('r')]);
        assert!(console.story);
        assert_eq!(orders[0].machine.as_deref(), Some("nuc-07"));
        press(&mut console, &[Key::Escape, Key::Escape, Key::Up]);
        assert_eq!((console.machines(&view).len(), console.story), (12, false));
    }

    #[test]
    fn the_pin_is_shown_for_a_minute() {
        let view = example::working();
        let mut console = Console::default();
        let at = Duration::from_secs;
        console.key(Key::Char('q'), &view, at(100));
        assert!(console.shows_pin(at(159)) && !console.shows_pin(at(160)));
        console.key(Key::Char('q'), &view, at(200));
        console.key(Key::Char('q'), &view, at(201));
        assert!(!console.shows_pin(at(202)));
    }

    #[test]
    fn a_restart_is_asked_for_twice() {
        let view = example::working();
        let mut console = Console::new(vec![Action::Restart]);
        assert_eq!(console.key(Key::Function(12), &view, Duration::ZERO), None);
        assert_eq!(console.key(Key::Escape, &view, Duration::ZERO), None);
        assert_eq!(console.key(Key::Enter, &view, Duration::ZERO), None);
        assert_eq!(console.key(Key::Function(12), &view, Duration::ZERO), None);
        assert_eq!(console.key(Key::Enter, &view, Duration::ZERO).unwrap().action, Action::Restart);
        assert_eq!(
            console.key(Key::Function(8), &view, Duration::ZERO),
            None,
            "support is not allowed"
        );
    }
}
