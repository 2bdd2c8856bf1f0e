//! Fleets that run workflows, with and without faults, by fixed seeds. A failure prints its seed;
//! `SIM_SEED` in the environment repeats its faults.

use sim::fleet::{Faults, Settings, Summary, run};

use crate::seeds::Seeds;

/// Machines of the large fleet: half a second of processor time each. `make soak` has more.
const AGENTS: usize = 300;
/// Number of seeds of the test with small fleets.
const RUNS: u64 = 2;

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
    // 45 workflows of 3 to 5 actions each, and 5 that begin their second action six times.
    assert_eq!((summary.succeeded, summary.failed, summary.cancelled), (45, 5, 0), "{summary}");
    assert_eq!((summary.kills, summary.cuts, summary.failed_writes), (0, 0, 0), "{summary}");
    assert!(summary.lasted.as_secs() < 600, "{summary}");
}

#[test]
fn small_fleets_are_installed_on_bad_days() {
    let seeds = Seeds::new(RUNS);
    let days = seeds.all.clone().flat_map(|it| [(it, Faults::ROUGH), (it, Faults::STORM)]);
    for (seed, faults) in days {
        let summary = installed(Settings { machines: 40, seed, faults });
        let is_bad = summary.kills > 0 && summary.cuts > 0 && summary.mishaps > 0;
        let is_bad = is_bad && summary.blackouts > 0;
        assert!(seeds.expect(is_bad), "{summary}");
    }
}

#[test]
fn a_small_fleet_is_installed_while_all_else_fails_for_a_while() {
    let seeds = Seeds::new(1);
    for seed in seeds.all.clone() {
        let summary = installed(Settings { machines: 40, seed, faults: Faults::OUTAGES });
        assert!(seeds.expect(summary.outages > 8 && summary.kills > 0), "{summary}");
    }
}

#[test]
fn the_same_seed_has_the_same_weather() {
    for seed in Seeds::new(1).all {
        let weather = || {
            let summary = installed(Settings { machines: 10, seed, faults: Faults::STORM });
            (summary.kills, summary.blackouts, summary.outages, summary.retried)
        };
        assert_eq!(weather(), weather());
    }
}

#[test]
fn hundreds_of_agents_do_their_work_on_a_bad_day() {
    let seeds = Seeds::new(1);
    let seed = seeds.all.start;
    let summary = installed(Settings { machines: AGENTS, seed, faults: Faults::ROUGH });
    let is_bad = summary.kills > 1 && summary.cuts > AGENTS / 4 && summary.mishaps > AGENTS / 10;
    let is_bad = is_bad && summary.blackouts > 0 && summary.retried > AGENTS / 200;
    assert!(seeds.expect(is_bad), "{summary}");
}
