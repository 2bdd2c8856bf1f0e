//! What the panel shows and what its buttons do: a pure machine of pages, presses and time.
//!
//! Time is the steady clock's, so that setting the wall clock wakes nobody. The caller tells it of
//! each press and release ([`Panel::press`], [`Panel::release`]), lets it look at the newest view
//! twice a second ([`Panel::tick`]), carries out the [`Order`]s that come back, and draws
//! [`Panel::shown`].

mod action;
mod light;
mod page;

use std::collections::BTreeSet;
use std::time::Duration;

use status::view::problem::{Remedy, Urgency};
use status::view::{StatusView, problems};

pub use action::{ACTIONS, Action};
pub use light::{Light, OLED_DIM, TFT_DIM_PERCENT};
pub use page::{Kind, Page, find};

/// A press that lasts so long is a hold.
pub const HOLD: Duration = Duration::from_secs(1);
/// The hold that erases the box.
pub const ERASE_HOLD: Duration = Duration::from_secs(5);
/// A question that nobody answers is withdrawn.
pub const CANCEL_AFTER: Duration = Duration::from_secs(20);
/// How long pin and code are shown on request.
pub const SECRET_FOR: Duration = Duration::from_secs(60);
/// A page that nobody turns goes back to rest.
pub const REST_AFTER: Duration = Duration::from_secs(60);
/// Without buttons, a page stays so long.
pub const PAGE_FOR: Duration = Duration::from_secs(6);
/// Without buttons, a problem stays so long.
pub const PROBLEM_FOR: Duration = Duration::from_secs(15);
/// Machines on one page of a small screen.
pub const INSTALLING_ROWS: usize = 3;
/// Lines that one press scrolls.
pub const SCROLL_LINES: usize = 3;
/// Lines of a problem's whole text at most.
pub const DETAIL_LINES_MAX: usize = 24;
/// Pixels that the walking dot has for its way, at most.
const WAY_MAX: u64 = 1 << 16;

/// A button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Button {
    /// Back, or up.
    Up,
    /// On, or down.
    Down,
    /// Do it.
    Select,
}

/// Which buttons there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Buttons {
    /// Up, down and select.
    Three,
    /// One: short is on, long is select.
    One,
    /// None: pages follow each other.
    #[default]
    None,
}

/// How the panel is built and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its screen.
    pub kind: Kind,
    /// Its buttons.
    pub buttons: Buttons,
    /// What it may do: the setting `panel.actions`.
    pub actions: Vec<Action>,
}

/// What the box is to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// What.
    pub action: Action,
    /// To which machine; `None`: to the box.
    pub machine: Option<String>,
}

/// A button that is down.
#[derive(Debug, Clone, Copy)]
struct Held {
    button: Button,
    since: Duration,
    /// It has done what it could do.
    spent: bool,
}

/// What a finger said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gesture {
    Up,
    Down,
    Select,
    Hold,
}

/// The panel.
#[derive(Debug)]
pub struct Panel {
    settings: Settings,
    page: Page,
    turned: Duration,
    awake: Duration,
    held: Option<Held>,
    known: BTreeSet<String>,
    claimed: Option<String>,
}

/// All that a screen needs beside the view.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The page.
    pub page: Page,
    /// The screen.
    pub kind: Kind,
    /// The buttons, for what is written beside them.
    pub buttons: Buttons,
    /// What the menu has.
    pub actions: Vec<Action>,
    /// How bright.
    pub light: Light,
    /// Seconds of the hold that erases, so far.
    pub held_seconds: u64,
    /// Seconds until the question is withdrawn.
    pub cancel_seconds: u64,
    /// Where the walking dot is: one pixel on, each second.
    pub dot: u32,
    /// Where the picture is moved to, by 0 or 1 pixels each way.
    pub shift: (i32, i32),
}

impl Panel {
    /// A panel that has shown nothing yet.
    pub fn new(settings: Settings, now: Duration) -> Self {
        Self {
            settings,
            page: Page::Boot,
            turned: now,
            awake: now,
            held: None,
            known: BTreeSet::new(),
            claimed: None,
        }
    }

    /// A button went down.
    pub fn press(&mut self, button: Button, view: &StatusView, now: Duration) {
        let dark = self.light(view, now) == Light::Off;
        self.awake = now;
        // Whoever wakes the screen has not seen what the press would do.
        self.held = Some(Held { button, since: now, spent: dark });
    }

    /// A button came up.
    pub fn release(&mut self, button: Button, view: &StatusView, now: Duration) -> Option<Order> {
        let held = self.held.take_if(|held| held.button == button)?;
        self.awake = now;
        if held.spent {
            return None;
        }
        let gesture = match (self.settings.buttons, button) {
            (Buttons::One, _) | (_, Button::Down) => Gesture::Down,
            (_, Button::Up) => Gesture::Up,
            (_, Button::Select) => Gesture::Select,
        };
        self.gesture(gesture, view, now)
    }

    /// Nobody knows any more which buttons are down: none of them does anything.
    pub fn let_go(&mut self) {
        self.held = None;
    }

    /// Time went by, or the view changed.
    pub fn tick(&mut self, view: &StatusView, now: Duration) -> Option<Order> {
        self.notice(view, now);
        let order = self.holding(view, now);
        self.turn_by_itself(view, now);
        order
    }

    /// What is to be drawn.
    pub fn shown(&self, view: &StatusView, now: Duration) -> Shown {
        let minute = now.as_secs() / 60;
        let since = now.saturating_sub(self.turned);
        let erasing = |held: Held| now.saturating_sub(held.since).as_secs();
        let held = self.held.filter(|held| self.page == Page::Erase && !held.spent);
        Shown {
            page: self.page.clone(),
            kind: self.settings.kind,
            buttons: self.settings.buttons,
            actions: self.menu(),
            light: self.light(view, now),
            held_seconds: held.map_or(0, erasing),
            cancel_seconds: CANCEL_AFTER.saturating_sub(since).as_secs(),
            dot: u32::try_from(now.as_secs() % WAY_MAX).unwrap_or(0),
            shift: (i32::from(minute % 2 == 1), i32::from(minute / 2 % 2 == 1)),
        }
    }

    fn light(&self, view: &StatusView, now: Duration) -> Light {
        let idle = now.saturating_sub(self.awake);
        light::light(self.settings.kind, self.settings.buttons, view, idle)
    }

    /// What the menu has.
    fn menu(&self) -> Vec<Action> {
        let allowed = |action: &Action| action.in_menu() && self.allows(*action);
        ACTIONS.into_iter().filter(allowed).collect()
    }

    fn allows(&self, action: Action) -> bool {
        self.settings.actions.contains(&action)
    }

    /// A claim or a problem that was not there before wakes the screen, and so does whoever looks
    /// for the box; a problem jumps the queue.
    fn notice(&mut self, view: &StatusView, now: Duration) {
        let code = view.claim.as_ref().map(|claim| claim.code.to_string());
        if code != self.claimed {
            self.claimed = code;
            self.awake = now;
        }
        if view.identifying {
            self.awake = now;
        }
        let urgent =
            || problems(view).into_iter().filter(|problem| problem.urgency != Urgency::Notice);
        let new = urgent().find(|problem| !self.known.contains(&problem.key));
        let there: BTreeSet<String> = urgent().map(|problem| problem.key).collect();
        if !self.page.stands(view) {
            self.go(Page::rest(view), now);
        }
        let busy = matches!(self.page, Page::Confirm(..) | Page::Reset | Page::Erase | Page::Boot);
        if busy || view.claim.is_some() {
            // It jumps the queue once there is one.
            self.known.retain(|key| there.contains(key));
            return;
        }
        self.known = there;
        let Some(problem) = new else { return };
        self.awake = now;
        self.go(Page::Problem(problem.key), now);
    }

    /// A button that stays down.
    fn holding(&mut self, view: &StatusView, now: Duration) -> Option<Order> {
        let held = self.held.filter(|held| !held.spent)?;
        let long = now.saturating_sub(held.since);
        let selects = held.button == Button::Select || self.settings.buttons == Buttons::One;
        self.awake = now;
        if self.page == Page::Erase && selects {
            if long < ERASE_HOLD {
                return None;
            }
            self.spend();
            self.go(Page::rest(view), now);
            return self.order(Action::FactoryReset, None);
        }
        if long < HOLD || !selects {
            return None;
        }
        self.spend();
        self.gesture(Gesture::Hold, view, now)
    }

    fn spend(&mut self) {
        if let Some(held) = &mut self.held {
            held.spent = true;
        }
    }

    /// What happens because nobody does anything.
    fn turn_by_itself(&mut self, view: &StatusView, now: Duration) {
        let since = now.saturating_sub(self.turned);
        let idle = since.min(now.saturating_sub(self.awake));
        let rest = Page::rest(view);
        let alone = self.settings.buttons == Buttons::None;
        let next = match &self.page {
            Page::Confirm(..) | Page::Reset | Page::Erase => {
                let held = self.held.is_some_and(|held| !held.spent);
                (since >= CANCEL_AFTER && !held).then_some(rest)
            }
            Page::Secret => (since >= SECRET_FOR).then_some(rest),
            Page::Boot => None,
            Page::Problem(_) if alone => (since >= PROBLEM_FOR).then(|| self.next_telling(view)),
            _ if alone => (since >= PAGE_FOR).then(|| self.next_telling(view)),
            // A problem stays until somebody has seen it.
            Page::Problem(_) => None,
            page => (idle >= REST_AFTER && *page != rest).then_some(rest),
        };
        if let Some(page) = next {
            self.go(page, now);
        }
    }

    /// The next page with something on it; the problems one after the other.
    fn next_telling(&self, view: &StatusView) -> Page {
        if view.claim.is_some() {
            return Page::Claim;
        }
        let mut page = self.after(view);
        for _ in Page::round(self.settings.kind, view) {
            if page.tells(view) {
                break;
            }
            page = page.turned(self.settings.kind, view, 1);
        }
        page
    }

    /// The page after this one, where each problem is one.
    fn after(&self, view: &StatusView) -> Page {
        if let Page::Problem(key) = &self.page {
            let all = problems(view);
            let at = all.iter().position(|problem| problem.key == *key).unwrap_or(0);
            if let Some(next) = all.get(at + 1) {
                return Page::Problem(next.key.clone());
            }
        }
        self.named(self.page.turned(self.settings.kind, view, 1), view)
    }

    /// The page, with the problem that is the most urgent now called by its name.
    fn named(&self, page: Page, view: &StatusView) -> Page {
        match page {
            Page::Problem(key) if key.is_empty() => {
                Page::Problem(find(view, "").map(|problem| problem.key).unwrap_or_default())
            }
            page => page,
        }
    }

    fn go(&mut self, page: Page, now: Duration) {
        self.page = page;
        self.turned = now;
    }

    fn order(&self, action: Action, machine: Option<String>) -> Option<Order> {
        self.allows(action).then_some(Order { action, machine })
    }
}

mod presses;
#[cfg(test)]
mod tests;
