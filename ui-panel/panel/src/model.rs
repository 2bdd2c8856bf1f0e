//! Pages of the panel and effects of its buttons: a state machine without I/O.
//!
//! Times are of the monotonic clock, so that a change of the wall clock does not wake the screen.
//! The caller reports presses and releases ([`Panel::press`], [`Panel::release`]), passes the
//! newest view twice a second ([`Panel::tick`]), carries out the returned [`PanelOrder`]s, and
//! draws [`Panel::shown`].

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

/// Minimum duration of a press that counts as a hold.
pub const HOLD: Duration = Duration::from_secs(1);
/// Duration of the hold that starts a factory reset.
pub const ERASE_HOLD: Duration = Duration::from_secs(5);
/// Time after which an unanswered prompt closes.
pub const CANCEL_AFTER: Duration = Duration::from_secs(20);
/// Time for which pin and code are shown on request.
pub const SECRET_FOR: Duration = Duration::from_secs(60);
/// Time without a press after which the panel returns to its resting page.
pub const REST_AFTER: Duration = Duration::from_secs(60);
/// Time for which a page stays on a panel without buttons.
pub const PAGE_FOR: Duration = Duration::from_secs(6);
/// Time for which a problem stays on a panel without buttons.
pub const PROBLEM_FOR: Duration = Duration::from_secs(15);
/// Maximum number of machines on one page of a small screen.
pub const INSTALLING_ROWS: usize = 3;
/// Number of lines that one press scrolls.
pub const SCROLL_LINES: usize = 3;
/// Maximum number of lines of a problem's whole text.
pub const DETAIL_LINES_MAX: usize = 24;
/// Maximum number of positions of the walking dot, in pixels.
const WAY_MAX: u64 = 1 << 16;

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

/// Action that the caller must carry out now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelOrder {
    /// Action to carry out.
    pub action: Action,
    /// Machine that the action applies to; `None` for the box.
    pub machine: Option<String>,
}

/// Button that is pressed.
#[derive(Debug, Clone, Copy)]
struct PressedButton {
    button: Button,
    since: Duration,
    /// True if the press has had its effect.
    spent: bool,
}

/// Kind of a press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PressKind {
    Up,
    Down,
    Select,
    Hold,
}

/// State of the panel.
#[derive(Debug)]
pub struct Panel {
    settings: Settings,
    page: Page,
    turned: Duration,
    awake: Duration,
    held: Option<PressedButton>,
    known: BTreeSet<String>,
    claimed: Option<String>,
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
    /// Allowed actions, in the order of the menu.
    pub actions: Vec<Action>,
    /// Brightness of the screen.
    pub light: Light,
    /// Seconds for which the button that starts the factory reset is held so far.
    pub held_seconds: u64,
    /// Seconds until the open prompt closes.
    pub cancel_seconds: u64,
    /// Position of the walking dot in pixels. The dot moves one pixel per second.
    pub dot: u32,
    /// Offset of the picture, 0 or 1 pixel in each direction, against burn-in.
    pub shift: (i32, i32),
}

impl Panel {
    /// Creates a panel that has shown no page yet.
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

    /// Handles a pressed button.
    pub fn press(&mut self, button: Button, view: &StatusView, now: Duration) {
        let dark = self.light(view, now) == Light::Off;
        self.awake = now;
        // A press that wakes the dark screen has no other effect, because the user has not seen its
        // page.
        self.held = Some(PressedButton { button, since: now, spent: dark });
    }

    /// Handles a released button. Returns the order that the press gives, if any.
    pub fn release(
        &mut self,
        button: Button,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        let held = self.held.take_if(|held| held.button == button)?;
        self.awake = now;
        if held.spent {
            return None;
        }
        let gesture = match (self.settings.buttons, button) {
            (Buttons::One, _) | (_, Button::Down) => PressKind::Down,
            (_, Button::Up) => PressKind::Up,
            (_, Button::Select) => PressKind::Select,
        };
        self.gesture(gesture, view, now)
    }

    /// Clears the pressed button, because the state of the buttons is unknown.
    pub fn let_go(&mut self) {
        self.held = None;
    }

    /// Handles elapsed time or a changed view. Returns an order if a hold has taken effect.
    pub fn tick(&mut self, view: &StatusView, now: Duration) -> Option<PanelOrder> {
        self.notice(view, now);
        let order = self.holding(view, now);
        self.turn_by_itself(view, now);
        order
    }

    /// Returns the data to draw the current page.
    pub fn shown(&self, view: &StatusView, now: Duration) -> ScreenInput {
        let minute = now.as_secs() / 60;
        let since = now.saturating_sub(self.turned);
        let erasing = |held: PressedButton| now.saturating_sub(held.since).as_secs();
        let held = self.held.filter(|held| self.page == Page::Erase && !held.spent);
        ScreenInput {
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

    /// Allowed actions, in the order of the menu.
    fn menu(&self) -> Vec<Action> {
        let allowed = |action: &Action| action.in_menu() && self.allows(*action);
        ACTIONS.into_iter().filter(allowed).collect()
    }

    fn allows(&self, action: Action) -> bool {
        self.settings.actions.contains(&action)
    }

    /// Wakes the screen for a new claim code, a new problem or an identify request. Shows a new
    /// problem first.
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
            // A new problem stays unknown, so that it is shown after the prompt or the claim.
            self.known.retain(|key| there.contains(key));
            return;
        }
        self.known = there;
        let Some(problem) = new else { return };
        self.awake = now;
        self.go(Page::Problem(problem.key), now);
    }

    /// Handles a button that is held. Returns an order if the hold is long enough.
    fn holding(&mut self, view: &StatusView, now: Duration) -> Option<PanelOrder> {
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
        self.gesture(PressKind::Hold, view, now)
    }

    fn spend(&mut self) {
        if let Some(held) = &mut self.held {
            held.spent = true;
        }
    }

    /// Changes the page after a time without presses.
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
            // A problem stays until a press dismisses it.
            Page::Problem(_) => None,
            page => (idle >= REST_AFTER && *page != rest).then_some(rest),
        };
        if let Some(page) = next {
            self.go(page, now);
        }
    }

    /// Returns the next page with content; each problem is a separate page.
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

    /// Returns the next page. After the page of one problem comes the page of the next problem, if
    /// there is one.
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

    /// Returns the page. A problem page without a key gets the key of the most urgent problem.
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

    fn order(&self, action: Action, machine: Option<String>) -> Option<PanelOrder> {
        self.allows(action).then_some(PanelOrder { action, machine })
    }
}

mod presses;
#[cfg(test)]
mod tests;
