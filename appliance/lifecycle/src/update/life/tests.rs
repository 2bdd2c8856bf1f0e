//! Table of simulated updates, and power cuts at every step of an update.

use super::{
    AGAIN, BOOT, End, Ends, EndsUnlessSafe, Freezes, Hangs, LACK, Lacks, Life, Mute, PANIC, Panics,
    SILENT, Slot, Stage, System, WATCHDOG, Works,
};

/// Test case: system, started slots, last stage, its reason, and the second of the last start.
type Row = (System, &'static str, Stage, &'static str, u64);

const UPDATES: [Row; 18] = [
    (Works(0), "b", Stage::Good, "", 0),
    (Works(175), "b", Stage::Good, "", 0),
    // The supervisor looks every 5 s.
    (Works(179), "b", Stage::Good, "", 0),
    (Works(181), "bba", Stage::Undone, LACK, 2 * (BOOT + 180)),
    (Lacks, "bba", Stage::Undone, LACK, 2 * (BOOT + 180)),
    (Panics(0), "bba", Stage::Undone, PANIC, 2 * BOOT),
    (Panics(119), "bba", Stage::Undone, PANIC, 2 * (BOOT + 119)),
    // Six exits, with five waits between them.
    (Ends(0), "bba", Stage::Undone, AGAIN, 2 * (BOOT + 7)),
    (Ends(48), "bba", Stage::Undone, AGAIN, 2 * (BOOT + 6 * 48 + 7)),
    (Hangs(0), "bba", Stage::Undone, "the supervisor hangs: no heartbeat for 120 s", 2 * 130),
    (Hangs(1), "bba", Stage::Undone, "the supervisor hangs: no heartbeat for 60 s", 2 * 70),
    (Hangs(101), "bba", Stage::Undone, "the supervisor hangs: no heartbeat for 60 s", 2 * 170),
    (Hangs(119), "bba", Stage::Undone, "the supervisor hangs: no heartbeat for 60 s", 2 * 185),
    (Mute, "bba", Stage::Undone, "the supervisor hangs: the API stuck 80 s", 2 * (BOOT + 80)),
    (Freezes(0), "bba", Stage::Undone, SILENT, 2 * (BOOT + WATCHDOG)),
    (Freezes(119), "bba", Stage::Undone, SILENT, 2 * (BOOT + 119 + WATCHDOG)),
    // A later failure does not count against the update.
    (Panics(121), "b", Stage::Good, "", 0),
    (Hangs(121), "b", Stage::Good, "", 0),
];

/// Checks that the box ends in `slot`, with a working system and no trial.
fn rests(life: &Life, slot: Slot, context: &str) {
    let loader = life.loader();
    assert_eq!(life.last(), slot.letter(), "{context}");
    assert_eq!((loader.trial(), loader.tries(slot)), (None, Some(0)), "{context}: {loader:?}");
    assert_eq!((loader.first(), loader.whole(slot)), (Some(slot), true), "{context}: {loader:?}");
}

#[test]
fn an_update_proves_itself_or_is_undone_with_its_reason() {
    for (system, order, stage, reason, last) in UPDATES {
        let mut life = Life::updated(system, []);
        assert_eq!(life.live(), End::Good, "{system:?}: {:?}", life.starts);
        assert_eq!(life.order(), order, "{system:?}: {:?}", life.starts);
        let (found, why) = life.stage().unwrap();
        assert_eq!(found, stage, "{system:?}: {why}");
        assert!(
            why.starts_with(reason) && why.is_empty() == reason.is_empty(),
            "{system:?}: {why}"
        );
        assert_eq!(life.starts.last().unwrap().1, last, "{system:?}: {:?}", life.starts);
        let undone = stage == Stage::Undone;
        rests(&life, if undone { Slot::A } else { Slot::B }, &format!("{system:?}"));
        assert_eq!(life.loader().whole(Slot::B), !undone, "{system:?}");
        assert_eq!(life.safe, None, "{system:?}: the box serves");
    }
}

#[test]
fn a_power_cut_costs_no_good_update_and_keeps_no_bad_one() {
    for (system, _, stage, ..) in UPDATES {
        let mut whole = Life::updated(system, []);
        whole.live();
        for cut in 1..=whole.steps {
            let context = format!("{system:?} cut at step {cut} of {}", whole.steps);
            let mut life = Life::updated(system, [cut]);
            assert_eq!(life.live(), End::Good, "{context}: {:?}", life.starts);
            let (found, why) = life.stage().unwrap();
            assert_eq!(found, stage, "{context}: {:?}", life.starts);
            assert_eq!(why.is_empty(), stage == Stage::Good, "{context}: {why}");
            rests(&life, if stage == Stage::Good { Slot::B } else { Slot::A }, &context);
        }
    }
}

/// Test that repeated power cuts can undo an update, but never break the box.
#[test]
fn many_power_cuts_end_on_a_system_that_works() {
    let mut stages = Vec::new();
    for (system, ..) in UPDATES {
        for (every, times) in
            (1..200).step_by(3).flat_map(|every| [2, 3, 5, 9].map(|it| (every, it)))
        {
            let context = format!("{system:?} cut {times} times, every {every} steps");
            let mut life = Life::updated(system, (1..=times).map(|number| number * every));
            assert_eq!(life.live(), End::Good, "{context}: {:?}", life.starts);
            let (stage, why) = life.stage().unwrap();
            assert_eq!(why.is_empty(), stage == Stage::Good, "{context}: {why}");
            rests(&life, if stage == Stage::Good { Slot::B } else { Slot::A }, &context);
            stages.push((system, stage));
        }
    }
    // Two power cuts use up the two starts that a new system has.
    assert!(stages.contains(&(Works(0), Stage::Good)));
    assert!(stages.contains(&(Works(0), Stage::Undone)));
    assert!(!stages.contains(&(Panics(0), Stage::Good)));
}

#[test]
fn a_slot_that_does_not_work_is_passed_over_without_an_update() {
    let flashed = |a, b| Life::new([a, b], |_| ());
    let table = [
        (Works(0), Works(0), "a"),
        (Panics(0), Works(0), "aaab"),
        (Hangs(0), Works(0), "aaab"),
        (Ends(0), Works(0), "aaab"),
        // Three exits in each slot, and safe mode in the first.
        (EndsUnlessSafe(0), Ends(0), "aaabbba"),
    ];
    for (a, b, order) in table {
        let mut life = flashed(a, b);
        assert_eq!(life.live(), End::Good, "{a:?} {b:?}: {:?}", life.starts);
        assert_eq!(life.order(), order, "{a:?} {b:?}");
        assert_eq!(life.safe.is_some(), order.len() > 4, "{a:?} {b:?}: {:?}", life.safe);
        assert_eq!(life.stage(), None);
    }
    // When both systems fail, the slots take turns for ever.
    let mut life = flashed(Panics(0), Panics(0));
    assert_eq!(life.live(), End::Restart);
    assert!(life.order().starts_with("aaabbbaaaabbbaaaa"), "{}", life.order());
}

/// Test that a failed check does not undo a system that was marked good before.
#[test]
fn a_system_that_is_not_on_trial_is_not_given_up_for_a_missing_proof() {
    let mut life = Life::new([Lacks, Works(0)], |_| ());
    assert_eq!((life.live(), life.order().as_str()), (End::Open, "a"));
    assert_eq!(life.loader().tries(Slot::A), Some(1));
}
