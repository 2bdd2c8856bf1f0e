//! Pages as pictures. All screens show the same view, as far as their space allows.

pub mod monitor;
pub mod oled;
pub mod tft;

use embedded_graphics::pixelcolor::{BinaryColor, Rgb565};
pub use embedded_graphics::prelude::Size;
use status::view::problem::Urgency;
use status::view::{MachineState, Role, StatusView, Update, UpdateState};

use machine_actions::Confirmation;

use crate::draw::Sheet;
use crate::draw::text::fit_name;
use crate::model::{HOLD, LONG_HOLD, MachineAction};
use crate::model::{Kind, Page, PanelOrder, ScreenInput, find, machine, permitted};

/// Drawn page of the panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Picture {
    /// A monochrome page, for an OLED.
    Mono(Sheet<BinaryColor>),
    /// A color page, for a TFT.
    Color(Sheet<Rgb565>),
}

/// Draws the current page of the panel.
pub fn draw(view: &StatusView, shown: &ScreenInput) -> Picture {
    match shown.kind {
        Kind::Oled => Picture::Mono(oled::draw(view, shown)),
        Kind::Tft => Picture::Color(tft::draw(view, shown)),
    }
}

/// Returns the page number: `2/6`; `!/6` for a problem of the whole box; else empty.
fn number(view: &StatusView, shown: &ScreenInput) -> String {
    let count = Page::round(shown.kind, view).len();
    let urgency = match &shown.page {
        Page::Problem(key) => find(view, key).map(|problem| problem.urgency),
        _ => None,
    };
    match (urgency, shown.page.place(shown.kind, view)) {
        (Some(Urgency::Box), _) => format!("!/{count}"),
        (_, Some(place)) => format!("{}/{count}", place + 1),
        (_, None) => String::new(),
    }
}

/// Formats the pin in two lines, such as `F3A9 1C20` and `8BQK 77TM`.
fn pin_lines(pin: &str) -> [String; 2] {
    let groups: Vec<&str> = pin.split('-').collect();
    let (first, second) = groups.split_at(groups.len().min(2));
    [first.join(" "), second.join(" ")]
}

/// Formats a number with its noun, such as `1 machine` or `12 machines`.
fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Number of machines in the states that a small screen shows, by the words of the states.
struct Tally {
    in_service: usize,
    ready: usize,
    installing: usize,
    failed: usize,
}

impl Tally {
    fn of(view: &StatusView) -> Self {
        let machines = || view.machines.iter();
        Self {
            in_service: view.count(&[MachineState::InService]),
            ready: view.count(&[MachineState::Ready]),
            installing: machines().filter(|machine| machine.under_way()).count(),
            failed: machines().filter(|machine| machine.needs_person()).count(),
        }
    }
}

/// Returns version and slot with its state, such as `v1.4.0  slot A  good`. A guest has no slot.
fn version(view: &StatusView) -> String {
    if view.slot.is_empty() {
        return format!("v{}", view.version);
    }
    let good = view.system.slots.iter().any(|slot| slot.running && slot.good);
    let state = if good { "good" } else { "on trial" };
    format!("v{}  slot {}  {state}", view.version, view.slot)
}

/// Returns the lines of a menu with the index of the cursor. The last line leads back.
fn menu_lines(labels: impl Iterator<Item = &'static str>, at: usize) -> (Vec<&'static str>, usize) {
    let lines: Vec<&str> = labels.chain(["Back"]).collect();
    let at = at.min(lines.len() - 1);
    (lines, at)
}

/// Returns the lines of a machine's actions with the index of the cursor.
fn action_lines(
    view: &StatusView,
    shown: &ScreenInput,
    name: &str,
    at: Option<MachineAction>,
) -> (Vec<&'static str>, usize) {
    let actions = machine(view, name).map(|machine| permitted(machine, &shown.actions));
    let actions = actions.unwrap_or_default();
    let place = at.and_then(|action| actions.iter().position(|it| *it == action));
    menu_lines(actions.iter().map(|action| action.label()), place.unwrap_or(actions.len()))
}

/// Text of a confirmation prompt.
struct Question {
    /// Question, such as `Switch off nuc-07?`; at most `room` columns.
    title: String,
    /// Effect and loss, as sentences.
    effect: String,
    /// Loss, else the effect: the sentence for a small screen.
    warning: String,
    /// Seconds of the hold that confirms.
    hold: u64,
}

impl Question {
    fn of(view: &StatusView, order: &PanelOrder, room: usize) -> Self {
        match order {
            PanelOrder::Box(action) => Self {
                title: format!("{}?", action.label()),
                effect: action.effect().to_owned(),
                warning: action.effect().to_owned(),
                hold: HOLD.as_secs(),
            },
            PanelOrder::Machine(order) => {
                let label = order.action.label();
                let room = room.saturating_sub(label.chars().count() + 2);
                let is_long = order.confirmation(view) == Some(Confirmation::Name);
                Self {
                    title: format!("{label} {}?", fit_name(&order.machine, room)),
                    effect: order.action.effect(),
                    warning: order.action.warning(),
                    hold: if is_long { LONG_HOLD } else { HOLD }.as_secs(),
                }
            }
        }
    }
}

/// Returns the state of an update, in words.
fn update_step(update: &Update) -> String {
    match update.state {
        UpdateState::Verified => format!("writing slot {}", update.slot),
        state => state.words().to_owned(),
    }
}

/// Returns a text about the interface without an address, with the time of the wait.
fn waiting(view: &StatusView) -> String {
    let person = view.nics.iter().find(|nic| nic.role != Role::Provisioning);
    match person.or_else(|| view.nics.first()) {
        None => "no network port was found".to_owned(),
        Some(nic) if nic.link_mbps.is_none() => format!("plug a cable into {}", nic.name),
        Some(nic) => {
            let since = nic.link_since.map_or(0, |at| view.now.duration_since(at).as_secs());
            format!("waiting for an address on {} … {} s", nic.name, since.max(0))
        }
    }
}
