//! Pages of the panel, and their order.

use status::view::{Problem, StatusView, UpdateState, problems};

use super::Action;

/// Kind of the panel's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An SSD1306 of 128×64 monochrome pixels.
    Oled,
    /// A TFT of 320×240 pixels, in color.
    Tft,
}

/// A page. It refers to machines and problems by name: the list may change before a press, and the
/// press must not act on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// Progress of the box's start.
    Boot,
    /// Claim page of a box without an owner.
    Claim,
    /// Summary of the box's health.
    Home,
    /// Machines in progress, beginning with this index (small screens).
    Installing(usize),
    /// All machines, with the cursor on one (larger screens).
    Rack(usize),
    /// A problem, by its key; empty: the most urgent.
    Problem(String),
    /// Whole text of a problem, from this line on.
    Details(String, usize),
    /// A machine, by its name.
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
    /// Confirmation prompt of an action, with the name of its machine; empty for the box.
    Confirm(Action, String),
    /// Explanation of the factory reset.
    Reset,
    /// List of data to be erased; the next long press starts the reset.
    Erase,
    /// Pin, and code if there is one, on request.
    Secret,
}

/// Page order of a small screen.
static OLED: [Page; 6] = [
    Page::Home,
    Page::Installing(0),
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
/// Pages of an unclaimed box.
static UNCLAIMED: [Page; 3] = [Page::Claim, Page::Network, Page::System];

impl Page {
    /// Resting page for this view.
    pub fn rest(view: &StatusView) -> Page {
        match (view.starting(), &view.claim) {
            (Some(_), _) => Page::Boot,
            (None, Some(_)) => Page::Claim,
            (None, None) => Page::Home,
        }
    }

    /// Pages that follow each other for this screen and view.
    pub fn round(kind: Kind, view: &StatusView) -> &'static [Page] {
        match (kind, &view.claim) {
            (_, Some(_)) => &UNCLAIMED,
            (Kind::Oled, None) => &OLED,
            (Kind::Tft, None) => &TFT,
        }
    }

    /// Position of the page in that order, from 0 on.
    pub fn place(&self, kind: Kind, view: &StatusView) -> Option<usize> {
        let this = std::mem::discriminant(self);
        Page::round(kind, view).iter().position(|page| std::mem::discriminant(page) == this)
    }

    /// The page `by` positions further, in a circle.
    pub fn turned(&self, kind: Kind, view: &StatusView, by: isize) -> Page {
        let round = Page::round(kind, view);
        let Some(place) = self.place(kind, view) else { return Page::rest(view) };
        let count = isize::try_from(round.len()).unwrap_or(1);
        let next = (isize::try_from(place).unwrap_or(0) + by).rem_euclid(count);
        round.get(usize::try_from(next).unwrap_or(0)).cloned().unwrap_or_else(|| Page::rest(view))
    }

    /// True if the page has content now.
    pub fn tells(&self, view: &StatusView) -> bool {
        match self {
            Page::Problem(_) => !problems(view).is_empty(),
            Page::Installing(_) => view.machines.iter().any(|machine| machine.under_way()),
            Page::Rack(_) => !view.machines.is_empty(),
            Page::Images => !view.images.items.is_empty(),
            Page::Update => {
                let news = |state| !matches!(state, UpdateState::Checking | UpdateState::Good);
                view.update.as_ref().is_some_and(|update| news(update.state))
            }
            _ => true,
        }
    }

    /// True if the subject of the page still exists.
    pub fn stands(&self, view: &StatusView) -> bool {
        match self {
            Page::Boot => view.starting().is_some(),
            Page::Claim => view.starting().is_none() && view.claim.is_some(),
            Page::Home | Page::Update | Page::Installing(_) | Page::Images | Page::Rack(_) => {
                view.starting().is_none() && view.claim.is_none()
            }
            Page::Problem(key) => key.is_empty() || find(view, key).is_some(),
            Page::Details(key, _) => find(view, key).is_some(),
            Page::Machine(name) => view.machines.iter().any(|it| it.name.as_str() == name),
            Page::Confirm(_, name) => {
                name.is_empty() || view.machines.iter().any(|it| it.name.as_str() == name)
            }
            _ => view.starting().is_none(),
        }
    }
}

/// The problem with that key; for an empty key the most urgent one.
pub fn find(view: &StatusView, key: &str) -> Option<Problem> {
    problems(view).into_iter().find(|problem| key.is_empty() || problem.key == key)
}
