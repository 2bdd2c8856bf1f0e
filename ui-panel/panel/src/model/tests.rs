use std::time::Duration;

use status::view::{StatusView, Text, example};

use super::*;

mod machines;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settings(kind: Kind, buttons: Buttons) -> Settings {
    Settings { kind, buttons, actions: ACTIONS.to_vec() }
}

/// Panel under test, with a virtual time.
struct Rig {
    panel: Panel,
    now: Duration,
    orders: Vec<PanelOrder>,
}

impl Rig {
    fn of(kind: Kind, buttons: Buttons, view: &StatusView) -> Self {
        let panel = Panel::new(settings(kind, buttons), s(1_000));
        let mut rig = Self { panel, now: s(1_000), orders: Vec::new() };
        rig.pass(view, Duration::ZERO);
        rig
    }

    fn oled(view: &StatusView) -> Self {
        Self::of(Kind::Oled, Buttons::Three, view)
    }

    fn pass(&mut self, view: &StatusView, time: Duration) -> &mut Self {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_millis(500));
            self.orders.extend(self.panel.tick(view, self.now));
        }
        self.orders.extend(self.panel.tick(view, self.now));
        self
    }

    fn hold(&mut self, button: Button, view: &StatusView, time: Duration) -> &mut Self {
        self.panel.press(button, view, self.now);
        self.pass(view, time);
        self.orders.extend(self.panel.release(button, view, self.now));
        self
    }

    fn tap(&mut self, buttons: &[Button], view: &StatusView) -> &mut Self {
        for button in buttons {
            self.hold(*button, view, Duration::from_millis(80));
        }
        self
    }

    fn page(&self, view: &StatusView) -> Page {
        self.panel.shown(view, self.now).page
    }

    fn light(&self, view: &StatusView) -> Light {
        self.panel.shown(view, self.now).light
    }
}

use Button::{Down, Select, Up};

#[test]
fn the_box_starts_then_wants_an_owner_then_rests_at_home() {
    let mut rig = Rig::oled(&example::booting(false));
    assert_eq!(rig.page(&example::booting(false)), Page::Boot);
    let unclaimed = example::unclaimed();
    assert_eq!(rig.pass(&unclaimed, s(1)).page(&unclaimed), Page::Claim);
    let calm = example::calm();
    assert_eq!(rig.pass(&calm, s(1)).page(&calm), Page::Home);
}

#[test]
fn pages_turn_both_ways_round() {
    let view = example::calm();
    for (kind, count) in [(Kind::Oled, 6), (Kind::Tft, 7)] {
        let mut seen = Vec::new();
        let mut rig =
            Rig::of(kind, Buttons::Three, &StatusView { machines: vec![], ..view.clone() });
        let view = StatusView { machines: vec![], ..view.clone() };
        for _ in 0..count {
            seen.push(rig.page(&view));
            rig.tap(&[Down], &view);
        }
        assert_eq!(rig.page(&view), Page::Home, "{seen:?}");
        for page in seen.iter().rev() {
            assert_eq!(rig.tap(&[Up], &view).page(&view), *page);
        }
    }
}

#[test]
fn a_new_problem_jumps_the_queue_once() {
    let calm = example::calm();
    let mut rig = Rig::oled(&calm);
    rig.tap(&[Down, Down, Down], &calm);
    assert_eq!(rig.page(&calm), Page::Network);
    let mut stopped = calm.clone();
    stopped.nics = example::dhcp_stopped().nics;
    let problem = Page::Problem("dhcp/eth1/a4:2b:b0:11:22:33".to_owned());
    assert_eq!(rig.pass(&stopped, s(1)).page(&stopped), problem);
    assert_eq!(rig.pass(&stopped, s(600)).page(&stopped), problem, "until somebody saw it");
    assert_eq!(rig.tap(&[Down], &stopped).page(&stopped), problem, "that press only woke it");
    assert_eq!(rig.tap(&[Down], &stopped).page(&stopped), Page::Network);
    assert_eq!(rig.pass(&stopped, s(5)).page(&stopped), Page::Network, "and not again");
    rig.pass(&calm, s(1));
    assert_eq!(rig.pass(&stopped, s(1)).page(&stopped), problem, "unless it went and came back");
    assert_eq!(rig.pass(&calm, s(1)).page(&calm), Page::Home, "a problem that is over goes");
}

#[test]
fn a_problem_of_the_start_is_told_after_it() {
    let mut booting = example::working();
    booting.boot = example::booting(false).boot;
    let mut rig = Rig::oled(&booting);
    assert_eq!(rig.page(&booting), Page::Boot);
    let view = example::working();
    let problem = Page::Problem("machine/nuc-07/Failed".to_owned());
    assert_eq!(rig.pass(&view, s(1)).page(&view), problem);
}

#[test]
fn what_is_not_allowed_is_not_in_the_menu_and_not_done() {
    let view = example::working();
    let actions = vec![Action::Identify];
    let settings = Settings { actions, ..settings(Kind::Oled, Buttons::Three) };
    let panel = Panel::new(settings, s(0));
    let mut rig = Rig { panel, now: s(0), orders: Vec::new() };
    rig.pass(&view, s(1)).tap(&[Select], &view);
    assert_eq!(rig.orders, [], "a retry is not allowed");
    let shown = rig.panel.shown(&view, rig.now);
    assert_eq!(shown.menu(), [Action::Identify]);
}

#[test]
fn the_menu_runs_what_is_harmless_at_once_and_asks_before_the_rest() {
    let view = example::calm();
    let mut rig = Rig::oled(&view);
    rig.hold(Select, &view, s(2));
    assert_eq!(rig.page(&view), Page::Menu(0));
    rig.tap(&[Select], &view);
    assert_eq!(rig.orders[0], PanelOrder::Box(Action::Identify));
    assert_eq!(rig.page(&view), Page::Home);
    rig.hold(Select, &view, s(2)).tap(&[Up, Up, Up, Select], &view);
    assert_eq!(rig.page(&view), Page::Confirm(PanelOrder::Box(Action::PowerOff)));
    rig.tap(&[Select], &view);
    assert_eq!((rig.page(&view), rig.orders.len()), (Page::Home, 1), "a short press is no yes");
    rig.hold(Select, &view, s(2)).tap(&[Up, Up, Up, Select], &view).hold(Select, &view, s(2));
    assert_eq!(rig.orders[1], PanelOrder::Box(Action::PowerOff));
    rig.hold(Select, &view, s(2)).tap(&[Up, Up, Up, Select], &view).pass(&view, s(21));
    assert_eq!((rig.page(&view), rig.orders.len()), (Page::Home, 2), "nobody answered");
}

fn to_erase(rig: &mut Rig, view: &StatusView) {
    rig.hold(Select, view, s(2)).tap(&[Up, Up, Select], view);
    assert_eq!(rig.page(view), Page::Reset);
    rig.tap(&[Select], view);
    assert_eq!(rig.page(view), Page::Erase);
}

#[test]
fn only_five_seconds_on_the_second_screen_erase_the_box() {
    let view = example::calm();
    let mut rig = Rig::oled(&view);
    to_erase(&mut rig, &view);
    rig.hold(Select, &view, Duration::from_millis(4_500));
    assert_eq!((rig.page(&view), rig.orders.len()), (Page::Home, 0), "let go too early");
    to_erase(&mut rig, &view);
    rig.pass(&view, Duration::from_millis(19_500));
    assert_eq!(rig.page(&view), Page::Erase);
    rig.pass(&view, s(1));
    assert_eq!((rig.page(&view), rig.orders.len()), (Page::Home, 0), "nobody held it");
    to_erase(&mut rig, &view);
    rig.hold(Down, &view, s(6));
    assert_eq!((rig.page(&view), rig.orders.len()), (Page::Home, 0), "the wrong button");
    to_erase(&mut rig, &view);
    rig.pass(&view, s(18)).hold(Select, &view, s(6));
    assert_eq!(rig.orders, [PanelOrder::Box(Action::FactoryReset)]);
}

#[test]
fn a_hold_shows_how_long_it_still_takes() {
    let view = example::calm();
    let mut rig = Rig::oled(&view);
    to_erase(&mut rig, &view);
    rig.panel.press(Select, &view, rig.now);
    rig.pass(&view, s(3));
    assert_eq!(rig.panel.shown(&view, rig.now).held_seconds, 3);
    assert_eq!(rig.panel.shown(&view, rig.now).cancel_seconds, 17);
}

#[test]
fn one_button_can_do_everything() {
    let view = example::calm();
    let mut rig = Rig::of(Kind::Oled, Buttons::One, &view);
    rig.tap(&[Select], &view);
    assert_eq!(rig.page(&view), Page::Installing, "short is on");
    rig.tap(&[Select; 5], &view);
    rig.hold(Select, &view, s(2));
    assert_eq!(rig.page(&view), Page::Menu(0));
    rig.tap(&[Select; 6], &view).hold(Select, &view, s(2));
    assert_eq!(rig.page(&view), Page::Reset);
    rig.hold(Select, &view, s(2));
    assert_eq!(rig.page(&view), Page::Erase);
    rig.hold(Select, &view, s(6));
    assert_eq!(rig.orders, [PanelOrder::Box(Action::FactoryReset)]);
}

#[test]
fn without_buttons_pages_follow_each_other_and_problems_stay_longer() {
    let view = example::working();
    let mut rig = Rig::of(Kind::Oled, Buttons::None, &view);
    let problem = Page::Problem("machine/nuc-07/Failed".to_owned());
    let steps = [
        (problem.clone(), 15),
        (Page::Network, 6),
        (Page::System, 6),
        (Page::Home, 6),
        (Page::Installing, 6),
        (problem, 15),
    ];
    for (page, seconds) in steps {
        assert_eq!(rig.page(&view), page);
        rig.pass(&view, s(seconds) - Duration::from_millis(500));
        assert_eq!(rig.page(&view), page, "{seconds} s");
        rig.pass(&view, Duration::from_millis(500));
    }
}

#[test]
fn an_oled_is_cared_for() {
    let view = example::calm();
    let mut rig = Rig::oled(&view);
    assert_eq!(rig.light(&view), Light::Full);
    assert_eq!(rig.pass(&view, s(59)).light(&view), Light::Full);
    assert_eq!(rig.pass(&view, s(1)).light(&view), Light::Dim);
    assert_eq!(rig.pass(&view, s(539)).light(&view), Light::Dim);
    assert_eq!(rig.pass(&view, s(1)).light(&view), Light::Off);
    let home = rig.page(&view);
    rig.tap(&[Down], &view);
    assert_eq!((rig.light(&view), rig.page(&view)), (Light::Full, home), "it only wakes");
    rig.pass(&view, s(601));
    let stopped = example::dhcp_stopped();
    assert_eq!(rig.pass(&stopped, s(1)).light(&stopped), Light::Full, "a problem wakes it");
    let shifts: std::collections::BTreeSet<(i32, i32)> =
        (0..4).map(|minute| rig.panel.shown(&view, s(minute * 60)).shift).collect();
    assert_eq!(shifts.len(), 4, "moved each minute");
    let dots = [0, 1, 2].map(|second| rig.panel.shown(&view, s(second)).dot);
    assert_eq!(dots, [0, 1, 2]);
}

#[test]
fn an_unclaimed_box_is_lit_for_an_hour_and_then_a_part_of_each_minute() {
    let view = example::unclaimed();
    let mut rig = Rig::oled(&view);
    rig.pass(&view, s(3_599));
    assert_eq!(rig.light(&view), Light::Dim);
    let lit = (0..120).filter(|_| rig.pass(&view, s(1)).light(&view) != Light::Off).count();
    assert_eq!(lit, 20);
    let mut other = view.clone();
    other.claim.as_mut().unwrap().code = Text::from("AAAAAA");
    assert_eq!(rig.pass(&other, s(1)).light(&other), Light::Full, "a new code wakes it");
}

#[test]
fn a_backlight_stays_on_while_something_is_wrong() {
    let (calm, bad) = (example::calm(), example::working());
    for (view, light) in [(calm, Light::Off), (bad, Light::Dim)] {
        let mut rig = Rig::of(Kind::Tft, Buttons::Three, &view);
        assert_eq!(rig.pass(&view, s(1_799)).light(&view), Light::Dim);
        assert_eq!(rig.pass(&view, s(2)).light(&view), light);
    }
}

#[test]
fn a_screen_without_buttons_never_stays_dark() {
    let view = example::calm();
    let mut rig = Rig::of(Kind::Oled, Buttons::None, &view);
    rig.pass(&view, s(600));
    let lit = (0..60).filter(|_| rig.pass(&view, s(1)).light(&view) != Light::Off).count();
    assert_eq!(lit, 10);
}

#[test]
fn the_pin_is_shown_for_a_minute() {
    let view = example::calm();
    let mut rig = Rig::oled(&view);
    rig.hold(Select, &view, s(2)).tap(&[Down, Select], &view);
    assert_eq!(rig.page(&view), Page::Secret);
    assert_eq!(rig.pass(&view, s(59)).page(&view), Page::Secret);
    assert_eq!(rig.pass(&view, s(2)).page(&view), Page::Home);
}

#[test]
fn a_refusal_is_shown_until_a_press() {
    let view = example::calm();
    let mut rig = Rig::oled(&view);
    rig.panel.report("the BMC does not respond".to_owned(), rig.now);
    let page = Page::Outcome("the BMC does not respond".to_owned());
    assert_eq!(rig.pass(&view, s(9)).page(&view), page);
    assert_eq!(rig.tap(&[Down], &view).page(&view), Page::Home);
}

#[test]
fn settings_name_every_action() {
    for action in ACTIONS {
        assert_eq!(Action::named(action.setting()), Some(action));
    }
    assert_eq!(Action::named("explode"), None);
}

#[test]
fn every_gesture_on_every_page_leads_to_a_page_that_stands() {
    let views = [example::working(), example::calm(), example::unclaimed(), StatusView::default()];
    for view in views {
        for (kind, buttons) in [(Kind::Oled, Buttons::Three), (Kind::Tft, Buttons::One)] {
            let mut chance = 7_u64;
            let mut rig = Rig::of(kind, buttons, &view);
            for _ in 0..2_000 {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let button = [Up, Down, Select][(chance >> 33) as usize % 3];
                let time = [80, 1_200, 400][(chance >> 40) as usize % 3];
                rig.hold(button, &view, Duration::from_millis(time));
                let page = rig.page(&view);
                assert!(page.stands(&view) || page == Page::rest(&view), "{page:?}");
            }
        }
    }
}
