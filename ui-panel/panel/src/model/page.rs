//! Pages of the panel, and their order.

use status::view::{Machine, Problem, StatusView, UpdateState, problems};

use super::{MachineAction, PanelOrder};

/// Kind of the panel's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An SSD1306 of 128×64 monochrome pixels.
    Oled,
    /// A TFT of 320×240 pixels, in color.
    Tft,
}

/// Page of the panel. A page names machines and problems, because the list may change before a
/// press and the press must not act on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// Progress of the box's start.
    Boot,
    /// Claim page of a box without an owner.
    Claim,
    /// Summary of the box's health.
    Home,
    /// First machines in progress (small screens).
    Installing,
    /// All machines in rack order, with the cursor at this index.
    Rack(usize),
    /// Problem with this key; an empty key means the most urgent problem.
    Problem(String),
    /// Whole text of the problem with this key, from this line on.
    Details(String, usize),
    /// Details of the machine with this name.
    Machine(String),
    /// List of networks with their state.
    Network,
    /// State of the image cache.
    Images,
    /// State of the box's system.
    System,
    /// State of the update.
    Update,
    /// Menu, with the cursor at this entry.
    Menu(usize),
    /// Actions of the machine with this name, with the cursor at an action; `None` for the way
    /// back. The page names the action, because the list may change before a press.
    Actions(String, Option<MachineAction>),
    /// Confirmation prompt of an order.
    Confirm(PanelOrder),
    /// Reason why an order was not carried out.
    Outcome(String),
    /// Explanation of the factory reset.
    Reset,
    /// List of data to be erased; the next long press starts the reset.
    Erase,
    /// Pin and, for an unclaimed box, claim code; shown on request.
    Secret,
}

/// Page order of a small screen.
static OLED: [Page; 6] = [
    Page::Home,
    Page::Installing,
    Page::Problem(String::new()),
    Page::Network,
    Page::System,
    Page::Update,
];
/// Page order of a larger screen.
static TFT: [Page; 7] = [
    Page::Home,
    Page::Rack(0),
    Page::Problem(String::new()),
    Page::Network,
    Page::Images,
    Page::System,
    Page::Update,
];
/// Page order of an unclaimed box.
static UNCLAIMED: [Page; 3] = [Page::Claim, Page::Network, Page::System];

impl Page {
    /// Returns the page that an idle panel shows.
    pub fn rest(view: &StatusView) -> Page {
        match (view.starting(), &view.claim) {
            (Some(_), _) => Page::Boot,
            (None, Some(_)) => Page::Claim,
            (None, None) => Page::Home,
        }
    }

    /// Returns the page order for this screen and view.
    pub fn round(kind: Kind, view: &StatusView) -> &'static [Page] {
        match (kind, &view.claim) {
            (_, Some(_)) => &UNCLAIMED,
            (Kind::Oled, None) => &OLED,
            (Kind::Tft, None) => &TFT,
        }
    }

    /// Returns the index of the page in the page order; `None` if the page is not in it.
    pub fn place(&self, kind: Kind, view: &StatusView) -> Option<usize> {
        let this = std::mem::discriminant(self);
        Page::round(kind, view).iter().position(|page| std::mem::discriminant(page) == this)
    }

    /// Returns the page `by` positions further; after the last page follows the first.
    pub fn turned(&self, kind: Kind, view: &StatusView, by: isize) -> Page {
        let round = Page::round(kind, view);
        let Some(place) = self.place(kind, view) else { return Page::rest(view) };
        let count = isize::try_from(round.len()).unwrap_or(1);
        let next = (isize::try_from(place).unwrap_or(0) + by).rem_euclid(count);
        round.get(usize::try_from(next).unwrap_or(0)).cloned().unwrap_or_else(|| Page::rest(view))
    }

    /// Returns true if the page has content now.
    pub fn tells(&self, view: &StatusView) -> bool {
        match self {
            Page::Problem(_) => !problems(view).is_empty(),
            Page::Installing => view.machines.iter().any(|machine| machine.under_way()),
            Page::Rack(_) => !view.machines.is_empty(),
            Page::Images => !view.images.items.is_empty(),
            Page::Update => {
                let news = |state| !matches!(state, UpdateState::Checking | UpdateState::Good);
                view.update.as_ref().is_some_and(|update| news(update.state))
            }
            _ => true,
        }
    }

    /// Returns true if the page can stay: its machine or problem exists, and the page fits the
    /// state of the box (starting, unclaimed or in service).
    pub fn stands(&self, view: &StatusView) -> bool {
        match self {
            Page::Boot => view.starting().is_some(),
            Page::Claim => view.starting().is_none() && view.claim.is_some(),
            Page::Home | Page::Update | Page::Installing | Page::Images | Page::Rack(_) => {
                view.starting().is_none() && view.claim.is_none()
            }
            Page::Problem(key) => key.is_empty() || find(view, key).is_some(),
            Page::Details(key, _) => find(view, key).is_some(),
            Page::Machine(name) | Page::Actions(name, _) => machine(view, name).is_some(),
            Page::Confirm(PanelOrder::Machine(order)) => order.confirmation(view).is_some(),
            _ => view.starting().is_none(),
        }
    }
}

/// Returns the problem with this key, or the most urgent problem for an empty key.
pub fn find(view: &StatusView, key: &str) -> Option<Problem> {
    problems(view).into_iter().find(|problem| key.is_empty() || problem.key == key)
}

/// Returns the machine with this name.
pub fn machine<'a>(view: &'a StatusView, name: &str) -> Option<&'a Machine> {
    view.machines.iter().find(|machine| machine.name.as_str() == name)
}
