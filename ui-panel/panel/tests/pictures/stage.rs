use std::time::Duration;

use panel::console::{Confirmation, Console, ErasePrompt};
use panel::model::{ACTIONS, Action, Buttons, Kind, Light, Page, ScreenInput};
use panel::screens::{Picture, monitor};
use status::view::{StatusView, example};

/// Returns the screen input that draws `page`.
pub fn shown(kind: Kind, page: Page) -> ScreenInput {
    ScreenInput {
        page,
        kind,
        buttons: Buttons::Three,
        actions: ACTIONS.into_iter().filter(|action| action.in_menu()).collect(),
        light: Light::Full,
        held_seconds: 0,
        cancel_seconds: 20,
        dot: 0,
        shift: (0, 0),
    }
}

/// Returns every page of a small screen, with the name of its golden.
pub fn pages() -> Vec<(&'static str, StatusView, Page)> {
    let urgent = || Page::Problem(String::new());
    let details = |key: &str| Page::Details(key.to_owned(), 0);
    vec![
        ("boot", example::booting(false), Page::Boot),
        ("boot-slow", example::booting(true), Page::Boot),
        ("home", example::working(), Page::Home),
        ("home-calm", example::calm(), Page::Home),
        ("home-stopped", example::dhcp_stopped(), Page::Home),
        ("installing", example::working(), Page::Installing(0)),
        ("installing-none", example::calm(), Page::Installing(0)),
        ("rack", example::working(), Page::Rack(4)),
        ("machine", example::working(), Page::Machine("nuc-04".to_owned())),
        ("machine-failed", example::working(), Page::Machine("nuc-07".to_owned())),
        ("problem", example::working(), urgent()),
        ("problem-none", example::calm(), urgent()),
        ("details", example::working(), details("machine/nuc-07/Failed")),
        ("network", example::working(), Page::Network),
        ("images", example::working(), Page::Images),
        ("system", example::working(), Page::System),
        ("dhcp-stopped", example::dhcp_stopped(), urgent()),
        ("update", example::updating(), Page::Update),
        ("update-none", example::working(), Page::Update),
        ("update-undone", example::undone(), urgent()),
        ("no-cable", example::no_cable(), urgent()),
        ("menu", example::working(), Page::Menu(5)),
        ("confirm", example::working(), Page::Confirm(Action::Restart, String::new())),
        ("reset", example::working(), Page::Reset),
        ("erase", example::working(), Page::Erase),
        ("safe-mode", example::safe_mode(), urgent()),
        ("claim", example::unclaimed(), Page::Claim),
        ("claim-no-address", example::without_address(), Page::Claim),
        ("pin", example::working(), Page::Secret),
    ]
}

/// Returns every tab of the monitor, with the name of its golden.
pub fn tabs() -> Vec<(&'static str, StatusView, Console)> {
    use panel::console::Tab;
    let console = |tab| Console { tab, ..Console::new(ACTIONS.to_vec()) };
    let mut story = console(Tab::Machines);
    story.cursor = "nuc-07".to_owned();
    story.story = true;
    let mut asking = console(Tab::Now);
    asking.asking = Some(Confirmation { action: Action::Restart, since: Duration::ZERO });
    let mut erasing = console(Tab::Box);
    erasing.erasing = Some(ErasePrompt { typed: "box-7".to_owned(), since: Duration::ZERO });
    let mut pin = console(Tab::Now);
    pin.secret = Some(Duration::ZERO);
    vec![
        ("now-pin", example::calm(), pin),
        ("boot", example::booting(true), console(Tab::Now)),
        ("claim", example::unclaimed(), console(Tab::Now)),
        ("now", example::working(), console(Tab::Now)),
        ("now-stopped", example::dhcp_stopped(), asking),
        ("machines", example::working(), console(Tab::Machines)),
        ("story", example::working(), story),
        ("network", example::working(), console(Tab::Network)),
        ("network-stopped", example::dhcp_stopped(), console(Tab::Network)),
        ("logs", example::working(), console(Tab::Logs)),
        ("box", example::updating(), console(Tab::Box)),
        ("erasing", example::working(), erasing),
        ("safe-mode", example::safe_mode(), console(Tab::Now)),
    ]
}

/// Draws a console on a monitor of [`monitor::SIZE`].
pub fn monitor(view: &StatusView, console: &Console) -> Picture {
    Picture::Color(monitor::draw(view, console, monitor::SIZE, Duration::ZERO))
}
