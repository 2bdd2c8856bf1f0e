//! Fleets under their workflows, on good days and bad ones, by fixed seeds and by one that is new
//! each time. What fails prints its seed; `SIM_SEED=<seed> cargo test -p sim --test fleet` has the
//! same weather again.

use sim::fleet::{Faults, Settings, Summary, run};

/// The seeds of a test: a fixed one, and one of today or the one that was asked for.
fn seeds() -> Vec<u64> {
    let asked = std::env::var("SIM_SEED").ok();
    match asked.map(|text| text.parse().expect("SIM_SEED is a number")) {
        Some(seed) => vec![seed],
        None => vec![1, fastrand::u64(..)],
    }
}

#[track_caller]
fn installed(settings: Settings) -> Summary {
    let summary = run(settings).unwrap_or_else(|failure| panic!("{settings:?}: {failure}"));
    println!("seed {}: {summary}", settings.seed);
    assert_eq!(summary.succeeded + summary.failed + summary.cancelled, settings.machines);
    summary
}

#[test]
fn nothing_goes_wrong_by_itself() {
    let summary = installed(Settings { machines: 50, seed: 7, faults: Faults::CALM });
    // 45 of 3 to 5 actions each, and 5 that begin their second one six times.
    assert_eq!((summary.succeeded, summary.failed, summary.cancelled), (45, 5, 0), "{summary}");
    assert_eq!((summary.kills, summary.cuts, summary.failed_writes), (0, 0, 0), "{summary}");
    assert!(summary.lasted.as_secs() < 600, "{summary}");
}

#[test]
fn small_fleets_are_installed_on_bad_days() {
    for (seed, faults) in
        seeds().into_iter().flat_map(|it| [(it, Faults::ROUGH), (it, Faults::STORM)])
    {
        let summary = installed(Settings { machines: 40, seed, faults });
        assert!(summary.kills > 0 && summary.cuts > 0 && summary.mishaps > 0, "{summary}");
    }
}

#[test]
fn a_thousand_agents_do_their_work_on_a_bad_day() {
    let seed = seeds().pop().expect("there is one");
    let summary = installed(Settings { machines: 1000, seed, faults: Faults::ROUGH });
    // 15, 850 and 220 are usual; how many it was is the weather's.
    assert!(summary.kills > 1 && summary.cuts > 250 && summary.mishaps > 100, "{summary}");
}
