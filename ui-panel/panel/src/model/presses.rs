//! Effect of a press on each page.

use std::time::Duration;

use machine_actions::Confirmation;
use status::view::{Machine, StatusView};

use super::input::menu;
use super::page::machine;
use super::{Action, Buttons, MachineAction, Page, Panel, PanelOrder, PressKind};
use super::{DETAIL_LINES_MAX, SCROLL_LINES, find, permitted, retry};

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
            Page::Actions(name, action) => self.in_actions(&name, action, gesture, view, now),
            Page::Confirm(order) => {
                self.go(Page::rest(view), now);
                if gesture == PressKind::Hold { self.order(order) } else { None }
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
            Page::Secret | Page::Outcome(_) => {
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
        let holds = matches!(
            self.page,
            Page::Home | Page::Claim | Page::Confirm(_) | Page::Erase | Page::Problem(_)
        );
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
        let menu = menu(&self.settings.actions);
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
                    self.go(Page::Confirm(PanelOrder::Box(*action)), now);
                }
                Some(action) => {
                    self.go(Page::rest(view), now);
                    return self.order(PanelOrder::Box(*action));
                }
            },
        }
        None
    }

    fn in_actions(
        &mut self,
        name: &str,
        at: Option<MachineAction>,
        gesture: PressKind,
        view: &StatusView,
        now: Duration,
    ) -> Option<PanelOrder> {
        let Some(machine) = machine(view, name) else {
            self.go(Page::rest(view), now);
            return None;
        };
        let actions = self.permitted(machine);
        let page = |at: usize| Page::Actions(name.to_owned(), actions.get(at).copied());
        // The line after the last action leads back.
        let lines = actions.len() + 1;
        let place = match at {
            Some(action) => actions.iter().position(|it| *it == action),
            None => Some(actions.len()),
        };
        let Some(place) = place else {
            // The machine no longer permits the action under the cursor.
            self.go(page(0), now);
            return None;
        };
        match (gesture, at) {
            (PressKind::Up, _) => self.go(page((place + lines - 1) % lines), now),
            (PressKind::Down, _) => self.go(page((place + 1) % lines), now),
            (PressKind::Hold, _) => self.go(Page::rest(view), now),
            (PressKind::Select, None) => self.go(Page::Machine(name.to_owned()), now),
            (PressKind::Select, Some(action)) => {
                let order = PanelOrder::Machine(action.order(machine));
                if action.confirmation(machine) != Confirmation::None {
                    self.go(Page::Confirm(order), now);
                    return None;
                }
                self.go(Page::Machine(name.to_owned()), now);
                return self.order(order);
            }
        }
        None
    }

    fn permitted(&self, machine: &Machine) -> Vec<MachineAction> {
        permitted(machine, &self.settings.actions)
    }

    /// Returns the page with the actions of a machine; `None` if the machine has no action.
    fn actions_page(&self, view: &StatusView, name: &str) -> Option<Page> {
        let first = self.permitted(machine(view, name)?).first().copied()?;
        Some(Page::Actions(name.to_owned(), Some(first)))
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
            (PressKind::Select, Some(problem)) => {
                let Some(order) = retry(view, &problem, &self.settings.actions) else {
                    self.go(Page::Details(problem.key, 0), now);
                    return None;
                };
                let next = self.after(view);
                self.go(next, now);
                return Some(PanelOrder::Machine(order));
            }
            (PressKind::Hold, Some(problem)) => {
                let name = problem.machine.as_ref();
                let actions = name.and_then(|name| self.actions_page(view, name));
                self.go(actions.unwrap_or(Page::Details(problem.key, 0)), now);
            }
            (PressKind::Up, Some(problem)) => self.go(Page::Details(problem.key, 0), now),
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
        let retry = MachineAction::Table(machine_actions::Action::Retry);
        match gesture {
            PressKind::Select | PressKind::Hold => {
                let actions = self.actions_page(view, name);
                self.go(actions.unwrap_or(back), now);
            }
            PressKind::Up => {
                let machine = &view.machines[place?];
                let can = self.permitted(machine).contains(&retry);
                return can.then(|| PanelOrder::Machine(retry.order(machine)));
            }
            PressKind::Down => self.go(back, now),
        }
        None
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
            (PressKind::Select, Page::Installing) if !view.machines.is_empty() => Page::Rack(0),
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
