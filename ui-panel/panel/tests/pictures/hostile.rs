use std::time::Duration;

use embedded_graphics::prelude::{OriginDimensions, PixelColor, Point, Size};
use embedded_graphics::primitives::Rectangle;
use machine_actions::Action as Table;
use panel::console::{Console, Outcome, Prompt, Tab};
use panel::draw::Sheet;
use panel::model::{ACTIONS, Action, Buttons, Kind, Page};
use panel::model::{MachineAction, MachineOrder, PanelOrder};
use panel::screens::{Picture, draw, monitor, oled};
use proptest::prelude::*;
use status::view::machine::{STATES, Sentence};
use status::view::{Claim, Fault, ForeignServer, Machine, Power, StatusView, Trouble, example};
use status::view::{Update, UpdateState, problems};

use crate::stage::shown;

/// Generates text of any script and length, as machines and people may send.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z0-9-]{1,12}",
        "[a-z0-9-]{40,90}",
        "[ -~]{0,300}",
        any::<String>(),
        "[\u{300}-\u{36f}\u{4e00}-\u{4e80}\u{590}-\u{5ff}\u{1b}\r\n\t ]{0,80}",
    ]
}

fn machine() -> impl Strategy<Value = Machine> {
    let figures =
        (0..STATES.len(), any::<Option<u8>>(), any::<Option<u64>>(), any::<Option<u64>>());
    let texts = (text(), text(), text(), text(), text());
    (figures, texts, any::<(bool, bool, u32, u32)>()).prop_map(|(figures, texts, more)| Machine {
        state: STATES[figures.0],
        percent: figures.1,
        bytes_per_second: figures.2,
        millis_left: figures.3,
        name: texts.0.into(),
        step: texts.1.into(),
        ip: texts.2.clone().into(),
        workflow: texts.2.into(),
        story: vec![
            Sentence {
                text: texts.3.clone().into(),
                warning: more.0,
                ..Sentence::default()
            };
            usize::from(figures.1.unwrap_or(3) % 60)
        ],
        trouble: more.1.then(|| Trouble {
            what: texts.3.clone().into(),
            on: texts.4.clone().into(),
            why: texts.4.clone().into(),
            now: texts.3.into(),
            code: texts.4.into(),
            ..Trouble::default()
        }),
        overdue: more.0,
        has_bmc: more.1,
        attempt: more.2,
        attempts_max: more.3,
        power: if more.0 { Power::On } else { Power::Off },
        mac: Some(stdx::MacAddr([0xff; 6])),
        since: Some(jiff::Timestamp::MIN),
        last_seen: Some(jiff::Timestamp::MIN),
        ..Machine::default()
    })
}

/// Generates boxes with unusual machines and texts.
fn view() -> impl Strategy<Value = StatusView> {
    let bases = [
        example::working as fn() -> StatusView,
        example::unclaimed,
        example::without_address,
        example::dhcp_stopped,
        example::no_cable,
        || example::booting(true),
        StatusView::default,
    ];
    let base = (0..bases.len()).prop_map(move |at| bases[at]());
    let figures = any::<(u64, u64, u64, Option<u8>, Option<i16>, u32)>();
    let machines = prop::collection::vec(machine(), 0..60);
    let texts = prop::collection::vec(text(), 8);
    (base, machines, texts, figures).prop_map(|(mut view, machines, texts, figures)| {
        let (large, used, life, share, heat, count) = figures;
        let text = |at: usize| texts[at].as_str().into();
        view.machines = machines;
        view.name = text(0);
        view.version = text(1);
        view.slot = text(2);
        view.pin = text(3);
        view.uptime_seconds = large;
        view.system.ram_total = large;
        view.system.ram_used = used;
        view.system.disk_total = used;
        view.system.disk_used = life;
        view.system.cpu_percent = share;
        view.system.temperature = heat;
        view.system.flash_life_percent = share;
        view.system.keys = count;
        view.system.accounts = count;
        view.system.certificate_sha256 = text(4);
        view.images.capacity = used;
        view.images.used = large;
        view.boot_traffic.extend([large, used, life]);
        view.clock.source = text(4);
        view.clock.utc_offset_seconds = i32::from_ne_bytes(count.to_ne_bytes());
        view.images.items.iter_mut().for_each(|it| it.origin.clone_from(&texts[4]));
        view.log.iter_mut().for_each(|it| it.text.clone_from(&texts[5]));
        view.log.iter_mut().for_each(|it| it.program.clone_from(&texts[6]));
        view.boot.iter_mut().for_each(|it| it.name = text(5));
        for nic in &mut view.nics {
            nic.name = text(6);
            nic.address = text(7);
            nic.link_mbps = nic.link_mbps.map(|_| count);
            nic.held = text(5);
            let (address, mac, vendor) = (text(0), text(1), text(2));
            let server = ForeignServer { address, mac, vendor, ..ForeignServer::default() };
            nic.foreign.extend((count % 2 == 0).then_some(server));
        }
        if let Some(claim) = &mut view.claim {
            let urls = claim.urls.iter().cycle().take(1).cloned().chain([text(6)]).collect();
            *claim = Claim { urls, code: text(7), tries_left: count, tries_max: count };
        }
        let update = Update {
            version: text(1),
            slot: text(2),
            reason: text(5),
            percent: share,
            waits_for: vec![text(6); 9],
            state: if count % 3 == 0 { UpdateState::RolledBack } else { UpdateState::Waiting },
            ..Update::default()
        };
        view.update = (count % 5 > 1).then_some(update);
        let trouble = Trouble { what: text(3), why: text(4), ..Trouble::default() };
        view.faults = vec![Fault { title: text(5), trouble, since: None, urgent: count % 2 == 1 }];
        view
    })
}

fn order(view: &StatusView, action: Table, machine: String) -> MachineOrder {
    let workflow = view.machines.last().map(|it| it.workflow.to_string()).unwrap_or_default();
    MachineOrder { action: MachineAction::Table(action), machine, workflow }
}

fn pages(view: &StatusView) -> Vec<Page> {
    let key = problems(view).last().map(|problem| problem.key.clone()).unwrap_or_default();
    let name = view.machines.last().map(|it| it.name.to_string()).unwrap_or_default();
    let mut pages = vec![
        Page::Boot,
        Page::Claim,
        Page::Home,
        Page::Network,
        Page::Images,
        Page::System,
        Page::Update,
        Page::Secret,
        Page::Reset,
        Page::Erase,
        Page::Problem(String::new()),
        Page::Problem(key.clone()),
        Page::Problem("gone".to_owned()),
        Page::Machine(name.clone()),
        Page::Machine("gone".to_owned()),
        Page::Installing,
        Page::Actions(name.clone(), None),
        Page::Confirm(PanelOrder::Machine(order(view, Table::PowerOff, name.clone()))),
        Page::Confirm(PanelOrder::Machine(order(view, Table::StartOver, name))),
        Page::Confirm(PanelOrder::Box(Action::SafeMode)),
        Page::Outcome(view.version.to_string()),
    ];
    for number in [0, 4, 23, 1_000] {
        pages.extend([Page::Rack(number), Page::Menu(number)]);
        pages.push(Page::Details(key.clone(), number));
    }
    pages
}

/// Checks that no pixel is drawn beyond the edges, and that texts do not overlap.
fn holds<C: PixelColor>(what: &str, sheet: &Sheet<C>) -> Result<(), TestCaseError> {
    prop_assert_eq!(sheet.spilled(), 0, "{} draws beyond its edges", what);
    let whole = Rectangle::new(Point::zero(), sheet.size());
    let written = sheet.written();
    for (at, one) in written.iter().enumerate() {
        let inside = whole.intersection(&one.area) == one.area;
        prop_assert!(inside, "{}: {:?} leaves the screen", what, one);
        let drawn = one.text.starts_with('<') || one.text.starts_with('[');
        for other in written[at + 1..].iter().filter(|_| !drawn) {
            let shared = one.area.intersection(&other.area).size;
            let apart = shared == Size::zero() || shared.width == 0 || shared.height == 0;
            prop_assert!(apart, "{}: {:?} stands on {:?}", what, one, other);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_page_overflows_whatever_the_box_has_to_tell(view in view(), shift in 0..2i32) {
        for page in pages(&view) {
            for buttons in [Buttons::Three, Buttons::One, Buttons::None] {
                for kind in [Kind::Oled, Kind::Tft] {
                    let mut shown = shown(kind, page.clone());
                    (shown.buttons, shown.shift) = (buttons, (shift, shift));
                    shown.held_seconds = u64::from(shift.unsigned_abs());
                    match draw(&view, &shown) {
                        Picture::Mono(sheet) => holds(&format!("{page:?}"), &sheet)?,
                        Picture::Color(sheet) => holds(&format!("{page:?}"), &sheet)?,
                    }
                }
                let mut shown = shown(Kind::Oled, page.clone());
                shown.buttons = buttons;
                let rows = oled::rows(&view, &shown);
                prop_assert!(rows.len() <= oled::ROWS, "{:?}: {:?}", page, rows);
                for row in rows {
                    prop_assert!(row.chars().count() <= oled::COLUMNS, "{:?}: {:?}", page, row);
                }
            }
        }
    }

    #[test]
    fn no_tab_overflows_whatever_the_box_has_to_tell(view in view(), size in 0..3_usize) {
        let size = [monitor::SIZE_MIN, monitor::SIZE, Size::new(1920, 1080)][size];
        let name = view.machines.last().map(|it| it.name.to_string()).unwrap_or_default();
        for tab in [Tab::Now, Tab::Machines, Tab::Network, Tab::Logs, Tab::Box] {
            for story in [false, true] {
                let order = PanelOrder::Machine(order(&view, Table::PowerOff, name.clone()));
                let prompt = match story {
                    true => Prompt::new(order, Duration::ZERO),
                    false => Prompt::with_name(order, &name, Duration::ZERO),
                };
                let refused = Outcome::Refused(view.version.to_string());
                let console = Console {
                    tab,
                    cursor: name.clone(),
                    story,
                    prompt: (tab != Tab::Logs).then_some(prompt),
                    outcome: Some((refused, Duration::from_secs(1))),
                    ..Console::new(ACTIONS.to_vec())
                };
                let sheet = monitor::draw(&view, &console, size, Duration::from_secs(7));
                holds(&format!("{tab:?}"), &sheet)?;
            }
        }
    }
}

/// Returns a configuration with few cases, because each case draws some hundred pages.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() }
}
