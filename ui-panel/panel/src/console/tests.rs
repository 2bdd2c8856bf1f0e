use super::{Console, Key, OUTCOME_FOR, Outcome, Tab};
use crate::model::{ACTIONS, Action, MachineAction, MachineOrder, PanelOrder};
use machine_actions::Action as Table;
use status::view::example;
use std::time::Duration;

fn machine_order(action: Table, machine: &str, workflow: &str) -> PanelOrder {
    PanelOrder::Machine(MachineOrder {
        action: MachineAction::Table(action),
        machine: machine.to_owned(),
        workflow: workflow.to_owned(),
    })
}

#[test]
fn keys_walk_through_the_machines() {
    let view = example::working();
    let mut console = Console::new(ACTIONS.to_vec());
    let press = |console: &mut Console, keys: &[Key]| {
        keys.iter().filter_map(|key| console.key(*key, &view, Duration::ZERO)).collect::<Vec<_>>()
    };
    press(&mut console, &[Key::Function(2), Key::Down, Key::Down, Key::Up]);
    assert_eq!((console.tab, console.cursor.as_str()), (Tab::Machines, "nuc-02"));
    press(&mut console, &[Key::Char('/'), Key::Char('f'), Key::Char('a'), Key::Enter]);
    assert_eq!(console.machines(&view).len(), 1);
    assert_eq!(console.chosen(&view).unwrap().name.as_str(), "nuc-07");
    let orders = press(&mut console, &[Key::Enter, Key::Char('r')]);
    assert!(console.story);
    assert_eq!(orders, [machine_order(Table::Retry, "nuc-07", "wf-14")]);
    press(&mut console, &[Key::Escape, Key::Escape, Key::Up]);
    assert_eq!((console.machines(&view).len(), console.story), (12, false));
}

#[test]
fn the_pin_is_shown_for_a_minute() {
    let view = example::working();
    let mut console = Console::default();
    let at = Duration::from_secs;
    console.key(Key::Char('q'), &view, at(100));
    assert!(console.shows_pin(at(159)) && !console.shows_pin(at(160)));
    console.key(Key::Char('q'), &view, at(200));
    console.key(Key::Char('q'), &view, at(201));
    assert!(!console.shows_pin(at(202)));
}

fn typed(console: &mut Console, text: &str, at: Duration) -> Option<super::PanelOrder> {
    let view = example::working();
    text.chars().find_map(|char| match char {
        '\n' => console.key(Key::Enter, &view, at),
        '!' => console.key(Key::Function(12), &view, at),
        char => console.key(Key::Char(char), &view, at),
    })
}

#[test]
fn only_who_types_its_name_in_time_erases_the_box() {
    let at = Duration::from_secs;
    let order = |text: &str, seconds: u64| {
        let mut console = Console::new(ACTIONS.to_vec());
        let first = typed(&mut console, "!e", at(100));
        assert_eq!(first, None);
        let order = typed(&mut console, text, at(100 + seconds));
        assert!(order.is_some() || console.prompt.is_none() || !text.contains('\n'), "{text}");
        order
    };
    let erase = Some(PanelOrder::Box(Action::FactoryReset));
    assert_eq!(order("box-7f3a\n", 19), erase);
    assert_eq!(order("box-7f3a\n", 20), None, "nobody answered in time");
    assert_eq!(order("box-7f3a", 1), None, "nobody said yes");
    for wrong in ["\n", "box-7f3b\n", "box-7f3aa\n", "!box-7f3a\n"] {
        assert_eq!(order(wrong, 1), None, "{wrong:?}");
    }
    let mut console = Console::new(vec![Action::Restart]);
    assert_eq!(typed(&mut console, "!ebox-7f3a\n", at(1)), None, "it is not allowed");
}

#[test]
fn what_f12_does_can_be_chosen() {
    let at = Duration::ZERO;
    for (keys, action) in [
        ("!\n", Some(Action::Restart)),
        ("!s\n", Some(Action::SafeMode)),
        ("!p\n", Some(Action::PowerOff)),
        ("!pr\n", Some(Action::Restart)),
        ("!x\n", None),
    ] {
        let mut console = Console::new(ACTIONS.to_vec());
        let order = typed(&mut console, keys, at);
        assert_eq!(order, action.map(PanelOrder::Box), "{keys:?}");
    }
}

#[test]
fn a_restart_is_asked_for_twice() {
    let view = example::working();
    let mut console = Console::new(vec![Action::Restart]);
    assert_eq!(console.key(Key::Function(12), &view, Duration::ZERO), None);
    assert_eq!(console.key(Key::Escape, &view, Duration::ZERO), None);
    assert_eq!(console.key(Key::Enter, &view, Duration::ZERO), None);
    assert_eq!(console.key(Key::Function(12), &view, Duration::ZERO), None);
    let restart = Some(PanelOrder::Box(Action::Restart));
    assert_eq!(console.key(Key::Enter, &view, Duration::ZERO), restart);
}

#[test]
fn a_restart_is_not_confirmed_after_twenty_seconds() {
    let view = example::working();
    let at = Duration::from_secs;
    for (seconds, is_answer) in [(19, true), (20, false), (3600, false)] {
        let mut console = Console::new(vec![Action::Restart]);
        assert_eq!(console.key(Key::Function(12), &view, at(100)), None);
        let order = console.key(Key::Enter, &view, at(100 + seconds));
        assert_eq!(order.is_some(), is_answer, "after {seconds} s");
        assert_eq!(console.key(Key::Enter, &view, at(100 + seconds)), None);
    }
}

/// Opens the machine `name` on a console that allows every action.
fn at_machine(name: &str) -> Console {
    let cursor = name.to_owned();
    Console { tab: Tab::Machines, cursor, ..Console::new(ACTIONS.to_vec()) }
}

#[test]
fn an_action_that_stops_a_machine_needs_a_yes_and_in_service_its_name() {
    let (view, at) = (example::working(), Duration::ZERO);
    let mut console = at_machine("nuc-07");
    assert_eq!(console.key(Key::Char('s'), &view, at), None);
    let over = Some(machine_order(Table::StartOver, "nuc-07", "wf-14"));
    assert_eq!(console.key(Key::Enter, &view, at), over);
    assert_eq!(console.key(Key::Char('y'), &view, at), None);
    assert_eq!(console.key(Key::Char('y'), &view, at), None, "any other key is no");
    assert_eq!(console.key(Key::Enter, &view, at), None, "that is the history");
    let mut console = at_machine("nuc-02");
    for (text, order) in [
        ("o\n", None),
        ("onuc-03\n", None),
        ("onuc-02\n", Some(machine_order(Table::PowerOff, "nuc-02", ""))),
    ] {
        assert_eq!(typed(&mut console, text, at), order, "{text:?}");
        console.story = false;
    }
}

#[test]
fn a_prompt_is_void_once_its_machine_has_other_work() {
    let (view, at) = (example::working(), Duration::ZERO);
    let mut console = at_machine("nuc-07");
    assert_eq!(console.key(Key::Char('s'), &view, at), None);
    let mut changed = view.clone();
    changed.machines[6].workflow = "wf-20".into();
    assert_eq!(console.key(Key::Enter, &changed, at), None);
}

#[test]
fn keys_act_only_as_far_as_state_and_settings_permit() {
    let (view, at) = (example::working(), Duration::ZERO);
    let press = |console: &mut Console, char| console.key(Key::Char(char), &view, at);
    assert_eq!(press(&mut at_machine("nuc-02"), 'r'), None, "nothing failed");
    assert_eq!(press(&mut at_machine("nuc-04"), 'p').unwrap(), {
        machine_order(Table::Pause, "nuc-04", "wf-12")
    });
    let mut console = Console { tab: Tab::Now, ..at_machine("nuc-04") };
    assert_eq!(press(&mut console, 'p'), None, "no machine is chosen on this tab");
    let mut limited = Console { actions: vec![Action::Retry], ..at_machine("nuc-07") };
    assert_eq!((press(&mut limited, 'o'), limited.prompt.is_none()), (None, true));
    assert!(press(&mut limited, 'r').is_some());
}

#[test]
fn an_outcome_is_shown_until_the_next_key() {
    let view = example::working();
    let mut console = at_machine("nuc-07");
    let refused = Outcome::Refused("its BMC does not respond".to_owned());
    console.refuse("its BMC does not respond".to_owned(), Duration::ZERO);
    assert_eq!(console.outcome(OUTCOME_FOR - Duration::from_millis(1)), Some(&refused));
    assert_eq!(console.outcome(OUTCOME_FOR), None);
    let retry = machine_order(Table::Retry, "nuc-07", "wf-14");
    console.confirm(&retry, Duration::ZERO);
    let done = Outcome::Done("nuc-07: The retry is requested.".to_owned());
    assert_eq!(console.outcome(Duration::ZERO), Some(&done));
    console.key(Key::Down, &view, Duration::ZERO);
    assert_eq!(console.outcome(Duration::ZERO), None);
}
