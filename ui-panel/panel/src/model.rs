//! Pages of the panel and effects of its buttons: a state machine without I/O.
//!
//! Times are of the monotonic clock, so that a change of the wall clock does not wake the screen.
//! The caller reports presses and releases ([`Panel::press`], [`Panel::release`]), passes the
//! newest view twice a second ([`Panel::tick`]), carries out the returned [`PanelOrder`]s, and
//! draws [`Panel::shown`].

mod action;
mod input;
mod light;
mod machine_action;
mod page;
mod presses;

use std::collections::BTreeSet;
use std::time::Duration;

use machine_actions::Confirmation;
use status::view::problem::Urgency;
use status::view::{StatusView, problems};

pub use action::{ACTIONS, Action};
pub use input::{Button, Buttons, ScreenInput, Settings};
pub use light::{Light, OLED_DIM, TFT_DIM_PERCENT};
pub use machine_action::{MachineAction, MachineOrder, permitted, retry};
pub use page::{Kind, Page, find, machine};

/// Minimum duration of a press that counts as a hold.
pub const HOLD: Duration = Duration::from_secs(1);
/// Duration of the hold that starts a factory reset, or an action that stops a machine in service.
pub const LONG_HOLD: Duration = Duration::from_secs(5);
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

/// Action that the caller must carry out now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PanelOrder {
    /// Action on the box.
    Box(Action),
    /// Action on one machine.
    Machine(MachineOrder),
}

impl PanelOrder {
    /// Returns a sentence about the order after it was carried out; empty if the screen shows that
    /// by itself.
    pub fn done(&self) -> String {
        match self {
            Self::Box(Action::Identify) => "The LED of the box blinks.".to_owned(),
            Self::Box(Action::Rescan) => "The search for other DHCP servers began.".to_owned(),
            Self::Box(_) => String::new(),
            Self::Machine(order) => format!("{}: {}", order.machine, order.action.done()),
        }
    }
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
        let seconds = |held: PressedButton| now.saturating_sub(held.since).as_secs();
        let is_long = self.after_long_hold(view).is_some();
        let held = self.held.filter(|held| is_long && !held.spent);
        ScreenInput {
            page: self.page.clone(),
            kind: self.settings.kind,
            buttons: self.settings.buttons,
            actions: self.settings.actions.clone(),
            light: self.light(view, now),
            held_seconds: held.map_or(0, seconds),
            cancel_seconds: CANCEL_AFTER.saturating_sub(since).as_secs(),
            dot: u32::try_from(now.as_secs() % WAY_MAX).unwrap_or(0),
            shift: (i32::from(minute % 2 == 1), i32::from(minute / 2 % 2 == 1)),
        }
    }

    fn light(&self, view: &StatusView, now: Duration) -> Light {
        let idle = now.saturating_sub(self.awake);
        light::light(self.settings.kind, self.settings.buttons, view, idle)
    }

    /// Shows why an order was not carried out.
    pub fn report(&mut self, reason: String, now: Duration) {
        self.awake = now;
        self.go(Page::Outcome(reason), now);
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
        if let Some(order) = self.after_long_hold(view).filter(|_| selects) {
            if long < LONG_HOLD {
                return None;
            }
            self.spend();
            self.go(Page::rest(view), now);
            return self.order(order);
        }
        if long < HOLD || !selects {
            return None;
        }
        self.spend();
        self.gesture(PressKind::Hold, view, now)
    }

    /// Returns the order that a hold of [`LONG_HOLD`] confirms on this page.
    fn after_long_hold(&self, view: &StatusView) -> Option<PanelOrder> {
        match &self.page {
            Page::Erase => Some(PanelOrder::Box(Action::FactoryReset)),
            Page::Confirm(PanelOrder::Machine(order)) => {
                let is_long = order.confirmation(view) == Some(Confirmation::Name);
                is_long.then(|| PanelOrder::Machine(order.clone()))
            }
            _ => None,
        }
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

    /// Returns the order if the settings allow its action.
    fn order(&self, order: PanelOrder) -> Option<PanelOrder> {
        let needed = match &order {
            PanelOrder::Box(action) => Some(*action),
            PanelOrder::Machine(order) => order.action.permission(),
        };
        needed.is_some_and(|action| self.settings.actions.contains(&action)).then_some(order)
    }
}

#[cfg(test)]
mod tests;
