use api::network::Mode;

use super::led::{self, Pattern};
use super::machine::STATES;
use super::problem::Urgency;
use super::*;
use crate::image::ImageState;
use crate::words::Tone;

fn keys(view: &StatusView) -> Vec<String> {
    problems(view).into_iter().map(|problem| problem.key).collect()
}

#[test]
fn a_headline_says_what_happens_and_who_needs_somebody() {
    let cases = [
        (example::working(), "3 of 12 machines are installing; nuc-07 needs you"),
        (example::calm(), "All 12 machines are in service"),
        (example::dhcp_stopped(), "3 of 12 machines are installing; this box and 1 more need you"),
        (example::booting(false), "Starting: opening the store"),
        (
            example::booting(true),
            "Starting: taking longer than usual (usually 2 s, now 9 s): opening the store",
        ),
        (example::unclaimed(), "This box is not claimed yet"),
        (StatusView::default(), "No machines yet"),
    ];
    for (view, sentence) in cases {
        assert_eq!(headline(&view).sentence(), sentence);
    }
    assert_eq!(headline(&example::working()).short(), "3 of 12 installing. nuc-07 needs you.");
}

#[test]
fn a_headline_counts_as_people_do() {
    let machine = |state| Machine { state, step: "x".into(), ..Machine::default() };
    let of = |states: &[MachineState]| {
        let machines = states.iter().copied().map(machine).collect();
        headline(&StatusView { machines, ..StatusView::default() }).sentence()
    };
    use MachineState::{InService, Installing, New, Off, Removing, Waiting};
    assert_eq!(of(&[Waiting]), "1 machine is waiting");
    assert_eq!(of(&[Waiting, Installing]), "All 2 machines are installing");
    assert_eq!(of(&[Installing, New]), "1 machine is installing");
    assert_eq!(of(&[New, New]), "No machines yet, 2 new requests");
    assert_eq!(of(&[Installing]), "1 machine is installing");
    assert_eq!(of(&[Installing, Off]), "1 of 2 machines is installing");
    assert_eq!(of(&[Installing, Installing]), "All 2 machines are installing");
    assert_eq!(of(&[Removing, InService]), "1 of 2 machines is being removed");
    assert_eq!(of(&[Off]), "1 machine, not in service");
    assert_eq!(of(&[Off, Off]), "2 machines, none in service");
}

#[test]
fn what_stops_every_machine_comes_before_what_stops_one() {
    assert_eq!(keys(&example::calm()), [""; 0]);
    assert_eq!(keys(&example::working()), ["machine/nuc-07/Failed"]);
    let mut view = example::dhcp_stopped();
    view.nics[1].link_mbps = None;
    view.nics[1].link_since = Some(view.now);
    view.update = example::undone().update;
    view.system.flash_life_percent = Some(80);
    let expected = [
        "update/1.5.0",
        "dhcp/eth1/a4:2b:b0:11:22:33",
        "link/eth1",
        "machine/nuc-07/Failed",
        "flash",
    ];
    assert_eq!(keys(&view), expected);
}

#[test]
fn a_port_that_nobody_armed_is_no_problem() {
    let mut view = example::dhcp_stopped();
    for mode in [Mode::Off, Mode::Proxy] {
        view.nics[1].mode = mode;
        assert_eq!(keys(&view), ["machine/nuc-07/Failed"], "{mode}");
    }
}

#[test]
fn silence_is_bad_only_past_its_limit() {
    let mut machine = Machine { state: MachineState::Silent, ..Machine::default() };
    assert_eq!(machine.tone(), Tone::Waiting);
    machine.overdue = true;
    assert_eq!(machine.tone(), Tone::Bad);
}

#[test]
fn every_state_has_its_own_word_and_shape() {
    for (at, state) in STATES.iter().enumerate() {
        for other in &STATES[at + 1..] {
            assert_ne!(state.word().text, other.word().text);
            assert_ne!(state.shape(), other.shape());
        }
    }
    assert_ne!(MachineState::Off.word().tone, Tone::Bad);
}

#[test]
fn each_problem_says_its_four_parts() {
    for view in [example::working(), example::dhcp_stopped(), example::no_cable()] {
        for problem in problems(&view) {
            let Trouble { what, on, why, now, code, causes: _ } = &problem.trouble;
            for part in [what, on, why, now, code] {
                assert!(!part.is_empty(), "{problem:?}");
            }
        }
    }
    let problem = problems(&example::working()).remove(0);
    let sentence = "image2disk failed on nuc-07: checksum does not match. \
        Compare the image's sum with the Template's, then retry.";
    assert_eq!(problem.trouble.sentence(), sentence);
    assert_eq!(problem.urgency, Urgency::Machine);
}

#[test]
fn lights_tell_by_rhythm() {
    let mut identified = example::working();
    identified.identifying = true;
    let mut disarmed = example::calm();
    disarmed.nics[1].armed_since = None;
    let cases = [
        (example::booting(false), Pattern::Slow),
        (example::unclaimed(), Pattern::Double),
        (example::calm(), Pattern::Solid),
        (example::working(), Pattern::Fast),
        (StatusView { update: example::updating().update, ..example::calm() }, Pattern::Slow),
        (disarmed, Pattern::Double),
        (identified, Pattern::Identify),
    ];
    for (view, pattern) in cases {
        assert_eq!(led::first(&view), pattern);
    }
    assert_eq!(led::second(&example::calm()), Pattern::Flicker);
    assert_eq!(led::second(&StatusView::default()), Pattern::Off);
}

#[test]
fn a_light_stays_as_it_is_until_it_says() {
    use Pattern::{Double, Fast, Flicker, Identify, Off, Slow, Solid};
    for pattern in [Slow, Double, Fast, Identify, Flicker] {
        let mut at = 0;
        while at < 10_000 {
            let stays = pattern.stays(at).unwrap();
            assert!(stays > 0, "{pattern:?} at {at}");
            for between in at..at + stays {
                assert_eq!(pattern.lit(between), pattern.lit(at), "{pattern:?} at {between}");
            }
            at += stays;
            let changes = pattern == Flicker || pattern.lit(at) != pattern.lit(at - 1);
            assert!(changes, "{pattern:?} at {at}");
        }
    }
    assert_eq!([Off, Solid].map(|it| (it.lit(7), it.stays(7))), [(false, None), (true, None)]);
}

#[test]
fn no_two_rhythms_look_alike() {
    use Pattern::{Double, Fast, Flicker, Identify, Off, Slow, Solid};
    let lit = |pattern: Pattern| (0..240).map(|at| pattern.lit(at * 25)).collect::<Vec<_>>();
    let all = [Off, Solid, Slow, Double, Fast, Identify, Flicker];
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            assert_ne!(lit(*one), lit(*other), "{one:?} {other:?}");
        }
    }
    let edges = |pattern| lit(pattern).windows(2).filter(|pair| !pair[0] && pair[1]).count();
    assert_eq!((edges(Slow), edges(Fast)), (5, 23));
}

#[test]
fn a_link_fits_the_smallest_code() {
    let claim =
        |url: &str| Claim { urls: vec![url.into()], code: "7kq4m2".into(), ..Claim::default() };
    let link = |url| claim(url).link();
    assert_eq!(link("https://10.20.30.40").as_deref(), Some("HTTPS://10.20.30.40/S/7KQ4M2"));
    let longest = link("https://255.255.255.255").unwrap();
    assert_eq!(longest, "HTTPS://255.255.255.255/S/7KQ4M2");
    assert_eq!(longest.len(), 32);
    assert_eq!(link("https://box-7f3a.local").unwrap(), "HTTPS://BOX-7F3A.LOCAL/S/7KQ4M2");
    assert_eq!(link("https://[fe80::1]"), None);
    assert_eq!(link("https://a-name-that-is-too-long.example.org"), None);
    assert_eq!(claim("https://10.20.30.40").address(), Some("10.20.30.40"));
}

#[test]
fn no_text_of_a_machine_moves_a_cursor() {
    let sent = r#"{"name":"a\u001b[2J\r\nb","machines":[{"name":"x\u202ey","story":
        [{"at":"2026-11-23T14:02:23Z","text":"\u0007"}],"trouble":{"why":"\u0000z"}}],
        "someday": 1}"#;
    let view: StatusView = serde_json::from_str(sent).unwrap();
    assert_eq!(view.name.as_str(), "a [2J  b");
    assert_eq!(view.machines[0].name.as_str(), "x y");
    assert_eq!(view.machines[0].story[0].text.as_str(), " ");
    assert_eq!(view.machines[0].trouble.as_ref().unwrap().why.as_str(), " z");
    let json = serde_json::to_string(&view).unwrap();
    assert!(!json.contains("\\u00"), "{json}");
}

#[test]
fn the_wire_keeps_everything() {
    for view in [example::working(), example::unclaimed(), example::undone()] {
        let json = serde_json::to_string(&view).unwrap();
        assert_eq!(serde_json::from_str::<StatusView>(&json).unwrap(), view);
        assert!(json.contains("\"bytesPerSecond\"") || view.machines.is_empty());
    }
    assert_eq!(serde_json::from_str::<StatusView>("{}").unwrap(), StatusView::default());
}

#[test]
fn times_and_sizes_are_short() {
    let view = example::working();
    assert_eq!(view.time_of_day(view.now), "14:02");
    assert_eq!(moment::time_of_day(view.now, 3_600 * 11), "01:02");
    assert_eq!(moment::time_of_day(view.now, i32::MAX), "14:02");
    assert_eq!(view.ago(view.system.backup_at.unwrap()), "2 days ago");
    assert_eq!(moment::ago(Timestamp::MAX, view.now), "now");
    assert_eq!(moment::uptime(view.uptime_seconds), "12d 4h");
    for (count, text) in
        [(212 << 20, "212M"), (4 << 30, "4G"), (19_542_101_197, "18.2G"), (0, "0B")]
    {
        assert_eq!(moment::bytes(count), text);
    }
    assert_eq!(moment::bytes(u64::MAX).len(), 9);
}

#[test]
fn safe_mode_is_said_whatever_else_there_is() {
    let why = "somebody chose it in the boot menu";
    for view in [example::working(), example::unclaimed(), example::dhcp_stopped()] {
        let view = StatusView { safe_mode: why.into(), ..view };
        let problems = problems(&view);
        let problem = problems.iter().find(|problem| problem.key == "safe-mode").unwrap();
        assert_eq!(problem.urgency, Urgency::Box);
        let sentence = "This box is in safe mode, without its settings: somebody chose it in the \
                        boot menu. Restart the box to leave safe mode.";
        assert_eq!(problem.trouble.sentence(), sentence);
        assert_eq!(health::health(&view).0.text, "safe mode");
        let sentence = headline(&view).sentence();
        let owned = view.claim.is_none();
        assert_eq!(sentence.starts_with("Safe mode: no machine is served; "), owned, "{sentence}");
    }
}

#[test]
fn a_box_without_its_state_says_so_and_how_it_ends() {
    let view = example::without_state();
    let problems = problems(&view);
    assert_eq!((problems[0].key.as_str(), problems[0].urgency), ("without-state", Urgency::Box));
    let sentence = problems[0].trouble.sentence();
    for part in ["cannot read its data", "cannot mount /dev/mmcblk0p4", "factory reset"] {
        assert!(sentence.contains(part), "{sentence}");
    }
    assert!(headline(&view).sentence().starts_with("State volume lost: no machine is served; "));
}

#[test]
fn a_failed_image_is_a_trouble_until_its_bytes_arrive() {
    let url = "https://images.example/debian.raw";
    let trouble = |state, message: &str| {
        let mut view = example::calm();
        let machine = &mut view.machines[0];
        (machine.state, machine.workflow) = (MachineState::Waiting, "wf-1".into());
        let image = Image {
            origin: url.to_owned(),
            state,
            message: message.to_owned(),
            workflows: vec!["default/wf-1".to_owned()],
            ..Image::default()
        };
        view.images.items = vec![image];
        view.explain_images();
        view.machines[0].trouble.clone().map(|it| it.sentence())
    };
    let message = format!("could not fetch {url}: no such host");
    for state in [ImageState::Failed, ImageState::Waiting] {
        let sentence = trouble(state, &message).unwrap();
        let start = format!("Image {url} cannot be fetched: no such host. Check the address");
        assert!(sentence.starts_with(&start), "{sentence}");
    }
    assert_eq!(trouble(ImageState::Fetching, ""), None);
}

#[test]
fn a_dismissed_notice_is_hidden_for_a_week_and_shown_at_once_if_it_begins_anew() {
    let mut view = example::dhcp_stopped();
    view.system.flash_life_percent = Some(80);
    let all = keys(&view);
    assert!(all.contains(&"flash".to_owned()));
    // A problem that stops machines cannot be dismissed.
    view.dismissed = all.iter().map(|key| key.as_str().into()).collect();
    assert_eq!(keys(&view), ["dhcp/eth1/a4:2b:b0:11:22:33", "machine/nuc-07/Failed"]);

    let (now, day) = (view.now, jiff::SignedDuration::from_hours(24));
    let flash = problem::all_problems(&view).into_iter().find(|it| it.key == "flash").unwrap();
    assert!(flash.is_hidden(now - day, now));
    assert!(!flash.is_hidden(now - day * 7, now), "a week is over");
    assert!(!flash.is_hidden(now + day, now), "by a clock that was ahead");
    let anew = Problem { since: Some(now), ..flash };
    assert!(!anew.is_hidden(now - day, now));
}

#[test]
fn a_link_without_a_reported_speed_has_no_speed() {
    let link = |link_mbps| Nic { link_mbps, ..Nic::default() }.link();
    let links = [None, Some(0), Some(100), Some(1_000), Some(2_500)].map(link);
    assert_eq!(links, ["no cable", "link up", "100 Mb/s", "1 Gb/s", "2.5 Gb/s"]);
}
