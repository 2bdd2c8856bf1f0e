//! Effect of a press on each page.

use std::time::Duration;

use status::view::StatusView;

use super::{
    Action, Buttons, DETAIL_LINES_MAX, INSTALLING_ROWS, Page, Panel, PanelOrder, PressKind,
};
use super::{Remedy, SCROLL_LINES, find};

impl Panel {
    /// Handles a press on the current page.
    pub(super) fn gesture(
        &mut self,
        gesture: PressKind,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        let gesture = self.meant(gesture);
        let page = self.page.clone();
        match page {
            Page::Boot => None,
            Page::Menu(at) => self.in_menu(at, gesture, view, now),
            Page::Confirm(action, machine) => {
                self.go(Page::rest(view), now);
                let machine = (!machine.is_empty()).then_some(machine);
                if gesture == PressKind::Hold { self.order(action, machine) } else { None }
            }
            Page::Reset => {
                let on = gesture == PressKind::Select;
                self.go(if on { Page::Erase } else { Page::rest(view) }, now);
                None
            }
            // The erase hold is handled elsewhere; a short press never confirms it.
            Page::Erase => {
                self.go(Page::rest(view), now);
                None
            }
            Page::Secret => {
                self.go(Page::rest(view), now);
                None
            }
            Page::Problem(key) => self.on_problem(&key, gesture, view, now),
            Page::Details(key, line) => {
                self.go(details(&key, line, gesture), now);
                None
            }
            Page::Machine(name) => self.on_machine(&name, gesture, view, now),
            page => self.on_round(page, gesture, view, now),
        }
    }

    /// Converts a single button's hold to select, except on pages where a hold has its own effect.
    fn meant(&self, gesture: PressKind) -> PressKind {
        let holds = matches!(self.page, Page::Home | Page::Claim | Page::Confirm(..) | Page::Erase);
        match gesture {
            PressKind::Hold if self.settings.buttons == Buttons::One && !holds => PressKind::Select,
            gesture => gesture,
        }
    }

    fn in_menu(
        &mut self,
        at: usize,
        gesture: PressKind,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        let menu = self.menu();
        // The line after the last action leads back.
        let lines = menu.len() + 1;
        match gesture {
            PressKind::Up => self.go(Page::Menu((at + lines - 1) % lines), now),
            PressKind::Down => self.go(Page::Menu((at + 1) % lines), now),
            PressKind::Hold => self.go(Page::rest(view), now),
            PressKind::Select => match menu.get(at) {
                None => self.go(Page::rest(view), now),
                Some(Action::ShowPin) => self.go(Page::Secret, now),
                Some(Action::FactoryReset) => self.go(Page::Reset, now),
                Some(action) if action.wants_hold() => {
                    self.go(Page::Confirm(*action, String::new()), now);
                }
                Some(action) => {
                    self.go(Page::rest(view), now);
                    return self.order(*action, None);
                }
            },
        }
        None
    }

    fn on_problem(
        &mut self,
        key: &str,
        gesture: PressKind,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        let problem = find(view, key);
        match (gesture, problem) {
            (PressKind::Down, _) => {
                let next = self.after(view);
                self.go(next, now);
            }
            (_, None) => self.go(self.page.turned(self.settings.kind, view, -1), now),
            (PressKind::Select, Some(problem)) if problem.remedy == Remedy::Retry => {
                let next = self.after(view);
                self.go(next, now);
                return self.order(Action::Retry, problem.machine.map(String::from));
            }
            (_, Some(problem)) => self.go(Page::Details(problem.key, 0), now),
        }
        None
    }

    fn on_machine(
        &mut self,
        name: &str,
        gesture: PressKind,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        let place = view.machines.iter().position(|machine| machine.name.as_str() == name);
        let back = Page::Rack(place.unwrap_or(0));
        match gesture {
            PressKind::Select | PressKind::Hold if self.allows(Action::MachinePower) => {
                self.go(Page::Confirm(Action::MachinePower, name.to_owned()), now);
                None
            }
            PressKind::Up => {
                let failed = place.is_some_and(|at| view.machines[at].needs_person());
                failed.then(|| self.order(Action::Retry, Some(name.to_owned())))?
            }
            _ => {
                self.go(back, now);
                None
            }
        }
    }

    /// Handles a press on a page of the page order.
    fn on_round(
        &mut self,
        page: Page,
        gesture: PressKind,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        let next = match (gesture, page) {
            (PressKind::Hold, _) => Page::Menu(0),
            (PressKind::Down, Page::Rack(at)) if at + 1 < view.machines.len() => Page::Rack(at + 1),
            (PressKind::Up, Page::Rack(at)) if at > 0 => Page::Rack(at - 1),
            (PressKind::Select, Page::Rack(at)) => match view.machines.get(at) {
                Some(machine) => Page::Machine(machine.name.to_string()),
                None => return None,
            },
            (PressKind::Select, Page::Installing(from)) => {
                let count = view.machines.iter().filter(|machine| machine.under_way()).count();
                let on = from + INSTALLING_ROWS;
                Page::Installing(if on < count { on } else { 0 })
            }
            (PressKind::Select, Page::Home) => match find(view, "") {
                Some(problem) => Page::Problem(problem.key),
                None => return None,
            },
            (PressKind::Select, _) => Page::rest(view),
            (PressKind::Up, page) => self.named(page.turned(self.settings.kind, view, -1), view),
            (PressKind::Down, page) => self.named(page.turned(self.settings.kind, view, 1), view),
        };
        self.go(next, now);
        None
    }
}

fn details(key: &str, line: usize, gesture: PressKind) -> Page {
    match gesture {
        PressKind::Down if line + SCROLL_LINES < DETAIL_LINES_MAX => {
            Page::Details(key.to_owned(), line + SCROLL_LINES)
        }
        PressKind::Up if line > 0 => {
            Page::Details(key.to_owned(), line.saturating_sub(SCROLL_LINES))
        }
        _ => Page::Problem(key.to_owned()),
    }
}
