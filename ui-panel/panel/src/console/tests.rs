use super::{Console, Key, Tab};
use crate::model::{ACTIONS, Action};
use status::view::example;
use std::time::Duration;

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
    assert_eq!(orders[0].machine.as_deref(), Some("nuc-07"));
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
        assert!(order.is_some() || console.erasing.is_none() || !text.contains('\n'), "{text}");
        order.map(|order| order.action)
    };
    assert_eq!(order("box-7f3a\n", 19), Some(Action::FactoryReset));
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
        let order = typed(&mut console, keys, at).map(|order| order.action);
        assert_eq!(order, action, "{keys:?}");
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
    assert_eq!(console.key(Key::Enter, &view, Duration::ZERO).unwrap().action, Action::Restart);
    assert_eq!(
        console.key(Key::Function(8), &view, Duration::ZERO),
        None,
        "support is not allowed"
    );
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
