use std::time::Duration;

use machine_actions::Action as Table;
use panel::console::{Console, Prompt};
use panel::model::{ACTIONS, Action, Buttons, Kind, Light, Page, ScreenInput};
use panel::model::{MachineAction, MachineOrder, PanelOrder};
use panel::screens::{Picture, Size, monitor};
use status::view::{StatusView, example};

/// Returns the screen input that draws `page`.
pub fn shown(kind: Kind, page: Page) -> ScreenInput {
    ScreenInput {
        page,
        kind,
        buttons: Buttons::Three,
        actions: ACTIONS.to_vec(),
        light: Light::Full,
        held_seconds: 0,
        cancel_seconds: 20,
        dot: 0,
        shift: (0, 0),
    }
}

/// Reason why an order was not carried out.
const REFUSAL: &str = "Cannot cancel workflow wf-14: its state is failed.";

fn order(machine: &str, workflow: &str, action: Table) -> PanelOrder {
    let (machine, workflow) = (machine.to_owned(), workflow.to_owned());
    PanelOrder::Machine(MachineOrder { action: MachineAction::Table(action), machine, workflow })
}

fn confirm(machine: &str, workflow: &str, action: Table) -> Page {
    Page::Confirm(order(machine, workflow, action))
}

fn actions(machine: &str, action: Table) -> Page {
    Page::Actions(machine.to_owned(), Some(MachineAction::Table(action)))
}

/// View of a box that runs as a program on another system, so that it has no slot.
fn guest() -> StatusView {
    let mut view = example::working();
    view.slot = "".into();
    view.system.slots.clear();
    view
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
        ("installing", example::working(), Page::Installing),
        ("installing-none", example::calm(), Page::Installing),
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
        ("confirm", example::working(), Page::Confirm(PanelOrder::Box(Action::Restart))),
        ("actions", example::working(), actions("nuc-07", Table::StartOver)),
        ("confirm-machine", example::working(), confirm("nuc-07", "wf-14", Table::StartOver)),
        ("confirm-in-service", example::working(), confirm("nuc-02", "", Table::PowerOff)),
        ("refused", example::working(), Page::Outcome(REFUSAL.to_owned())),
        ("guest", guest(), Page::System),
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
    let asks = |tab, prompt| Console { prompt: Some(prompt), ..console(tab) };
    let restart = Prompt::new(PanelOrder::Box(Action::Restart), Duration::ZERO);
    let reset = PanelOrder::Box(Action::FactoryReset);
    let typed = |prompt, text: &str| Prompt { typed: text.to_owned(), ..prompt };
    let reset = typed(Prompt::with_name(reset, "box-7f3a", Duration::ZERO), "box-7");
    let off = order("nuc-02", "", Table::PowerOff);
    let off = typed(Prompt::with_name(off, "nuc-02", Duration::ZERO), "nu");
    let over = Prompt::new(order("nuc-07", "wf-14", Table::StartOver), Duration::ZERO);
    let at = |cursor: &str, console| Console { cursor: cursor.to_owned(), ..console };
    let mut done = at("nuc-07", console(Tab::Machines));
    done.confirm(&order("nuc-07", "wf-14", Table::Retry), Duration::ZERO);
    let mut refused = at("nuc-07", console(Tab::Machines));
    refused.refuse(REFUSAL.to_owned(), Duration::ZERO);
    let mut pin = console(Tab::Now);
    pin.secret = Some(Duration::ZERO);
    vec![
        ("now-pin", example::calm(), pin),
        ("boot", example::booting(true), console(Tab::Now)),
        ("claim", example::unclaimed(), console(Tab::Now)),
        ("now", example::working(), console(Tab::Now)),
        ("now-stopped", example::dhcp_stopped(), asks(Tab::Now, restart)),
        ("machines", example::working(), console(Tab::Machines)),
        ("story", example::working(), story),
        ("network", example::working(), console(Tab::Network)),
        ("network-stopped", example::dhcp_stopped(), console(Tab::Network)),
        ("logs", example::working(), console(Tab::Logs)),
        ("box", example::updating(), console(Tab::Box)),
        ("erasing", example::working(), asks(Tab::Box, reset)),
        ("switch-off", example::working(), at("nuc-02", asks(Tab::Machines, off))),
        ("start-over", example::working(), at("nuc-07", asks(Tab::Machines, over))),
        ("refused", example::working(), refused),
        ("done", example::working(), done),
        ("guest", guest(), console(Tab::Now)),
        ("safe-mode", example::safe_mode(), console(Tab::Now)),
    ]
}

/// Returns the monitors whose pictures are compared, with the suffix of their goldens: the usual
/// one, and a large one.
pub fn monitors() -> [(Size, &'static str); 2] {
    [(monitor::SIZE, ""), (Size::new(1920, 1080), "-1080")]
}

/// Returns true for the tabs that are also drawn on the large monitor.
pub fn is_drawn_large(name: &str) -> bool {
    matches!(name, "now" | "claim" | "machines")
}

/// Draws a console on a monitor of `size`.
pub fn monitor(view: &StatusView, console: &Console, size: Size) -> Picture {
    Picture::Color(monitor::draw(view, console, size, Duration::ZERO))
}
