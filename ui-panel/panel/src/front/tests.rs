use std::time::Duration;

use status::view::{StatusView, example};

use super::{Event, Front};
use crate::model::{ACTIONS, Action, Button, Buttons, Kind, Light, OLED_DIM, PanelOrder, Settings};
use crate::screens::Picture;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn front(kind: Kind, buttons: Buttons) -> Front {
    Front::new(Settings { kind, buttons, actions: ACTIONS.to_vec() }, Duration::ZERO)
}

/// Returns the frames during `time`, checked every 10 ms, with their times in milliseconds.
fn frames(front: &mut Front, view: &StatusView, time: std::ops::Range<u64>) -> Vec<(u64, Light)> {
    let mut seen = Vec::new();
    for at in time.step_by(10) {
        front.tick(view, ms(at));
        seen.extend(front.frame(view, ms(at)).map(|frame| (at, frame.light)));
    }
    seen
}

/// Returns the number of lit pixels of a picture.
fn lit(picture: &Picture) -> usize {
    match picture {
        Picture::Mono(sheet) => sheet.pixels().iter().filter(|pixel| pixel.is_on()).count(),
        Picture::Color(sheet) => {
            use embedded_graphics::pixelcolor::Rgb565;
            use embedded_graphics::prelude::RgbColor as _;
            sheet.pixels().iter().filter(|pixel| **pixel != Rgb565::BLACK).count()
        }
    }
}

#[test]
fn what_changed_is_drawn_and_twice_a_second_at_most() {
    let view = example::calm();
    let mut front = front(Kind::Oled, Buttons::Three);
    // Only the dot changes; it moves once a second.
    let seen = frames(&mut front, &view, 0..5_000);
    assert_eq!(seen.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1000, 2000, 3000, 4000]);
    // Ten presses in one second do not cause ten pictures.
    let mut drawn = Vec::new();
    for at in (5_000..6_000).step_by(10) {
        let event = match at % 100 {
            0 => Some(Event::Down(Button::Down)),
            50 => Some(Event::Up(Button::Down)),
            _ => None,
        };
        event.map(|event| front.event(event, &view, ms(at)));
        drawn.extend(front.frame(&view, ms(at)).map(|_| at));
    }
    assert_eq!(drawn, [5_000, 5_500], "{drawn:?}");
}

#[test]
fn a_press_is_drawn_at_once() {
    let view = example::calm();
    let mut front = front(Kind::Oled, Buttons::Three);
    assert!(front.frame(&view, ms(200)).is_some());
    front.event(Event::Down(Button::Down), &view, ms(800));
    front.event(Event::Up(Button::Down), &view, ms(900));
    assert!(front.frame(&view, ms(910)).is_some());
}

#[test]
fn a_dark_screen_shows_nothing_and_is_not_written_to() {
    for (kind, dark) in [(Kind::Oled, 600_000), (Kind::Tft, 1_800_000)] {
        let view = example::calm();
        let mut front = front(kind, Buttons::Three);
        front.tick(&view, ms(0));
        assert!(lit(&front.frame(&view, ms(0)).unwrap().picture) > 100);
        front.tick(&view, ms(dark));
        let frame = front.frame(&view, ms(dark)).unwrap();
        assert_eq!((frame.light, lit(&frame.picture)), (Light::Off, 0));
        assert_eq!(frames(&mut front, &view, dark + 1..dark + 10_000), [], "{kind:?}");
        front.event(Event::Down(Button::Up), &view, ms(dark + 20_000));
        let frame = front.frame(&view, ms(dark + 20_000)).unwrap();
        assert_eq!(frame.light, Light::Full);
        assert!(lit(&frame.picture) > 100);
    }
    assert_eq!(OLED_DIM, 26, "10 % of 255");
}

#[test]
fn whoever_looks_for_the_box_sees_its_screen() {
    let calm = example::calm();
    let sought = StatusView { identifying: true, ..calm.clone() };
    let mut front = front(Kind::Oled, Buttons::Three);
    front.tick(&calm, ms(700_000));
    assert_eq!(front.frame(&calm, ms(700_000)).unwrap().light, Light::Off);
    let seen = frames(&mut front, &sought, 701_000..761_000);
    assert!(seen.iter().all(|(_, light)| *light == Light::Full) && seen.len() > 50, "{seen:?}");
}

#[test]
fn a_hold_is_an_order_after_a_second_and_one_that_is_lost_is_none() {
    let view = example::calm();
    let hold = |lost: Option<u64>| {
        let mut front = front(Kind::Oled, Buttons::One);
        let mut orders = Vec::new();
        // Opens the menu, whose first line is the identify action.
        front.event(Event::Down(Button::Select), &view, ms(1_000));
        for at in (1_000..2_500).step_by(100) {
            assert_eq!(front.tick(&view, ms(at)), None);
        }
        front.event(Event::Up(Button::Select), &view, ms(2_500));
        front.event(Event::Down(Button::Select), &view, ms(3_000));
        for at in (3_000..6_000).step_by(100) {
            if lost == Some(at) {
                front.event(Event::Lost, &view, ms(at));
            }
            orders.extend(front.tick(&view, ms(at)).map(|order| (at, order)));
        }
        assert_eq!(front.event(Event::Up(Button::Select), &view, ms(6_000)), None);
        orders
    };
    assert_eq!(hold(None), [(4_000, PanelOrder::Box(Action::Identify))]);
    assert_eq!(hold(Some(3_900)), []);
}

#[test]
fn a_hold_that_ended_between_two_looks_counts() {
    let view = example::calm();
    let mut front = front(Kind::Oled, Buttons::One);
    front.event(Event::Down(Button::Select), &view, ms(0));
    front.event(Event::Up(Button::Select), &view, ms(1_100));
    front.event(Event::Down(Button::Select), &view, ms(2_000));
    let order = front.event(Event::Up(Button::Select), &view, ms(3_100)).unwrap();
    assert_eq!(order, PanelOrder::Box(Action::Identify));
}
