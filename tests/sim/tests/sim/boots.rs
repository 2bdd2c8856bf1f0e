//! Racks of several sizes, in each mode, by fixed seeds. A failure prints its seed, and `SIM_SEED`
//! in the environment repeats it.

use dhcp::Mode;
use sim::{Faults, Settings, Summary, Violation};

use crate::seeds::Seeds;

const MODES: [Mode; 3] = [Mode::Pool, Mode::Reserved, Mode::Proxy];
/// Number of seeds of a test with small racks.
const RUNS: u64 = 4;

#[track_caller]
fn boot(settings: Settings) -> Summary {
    sim::run(settings).unwrap_or_else(|failure| panic!("{settings:?}: {failure}"))
}

#[test]
fn small_racks_boot_on_a_bad_day() {
    let seeds = Seeds::new(RUNS);
    for seed in seeds.all.clone() {
        for (mode, machines) in MODES.into_iter().flat_map(|mode| [(mode, 3), (mode, 200)]) {
            let summary = boot(Settings { mode, ..Settings::new(machines, seed) });
            assert!(summary.boots >= u64::from(machines), "{summary}");
            assert!(seeds.expect(machines < 100 || summary.lost > 0), "{summary}");
        }
    }
}

#[test]
fn small_racks_boot_in_a_storm() {
    let seeds = Seeds::new(RUNS);
    for (seed, mode) in seeds.all.clone().flat_map(|seed| MODES.map(|mode| (seed, mode))) {
        let summary = boot(Settings { mode, faults: Faults::STORM, ..Settings::new(200, seed) });
        let is_storm = summary.kills > 50 && summary.lost > summary.packets / 8;
        assert!(seeds.expect(is_storm), "{summary}");
    }
}

#[test]
fn ten_thousand_machines_boot_at_once() {
    let seeds = Seeds::new(1);
    let summary = boot(Settings::new(10_000, seeds.all.start));
    println!("{summary}");
    assert_eq!(summary.machines, 10_000);
    assert!(seeds.expect(summary.kills > 0 && summary.lost > 10_000), "{summary}");
    assert!(seeds.expect(summary.in_use >= 9_000), "{summary}");
}

#[test]
fn nothing_goes_wrong_by_itself() {
    for mode in MODES {
        let summary = boot(Settings { mode, faults: Faults::CALM, ..Settings::new(500, 7) });
        assert_eq!((summary.boots, summary.lost, summary.ran_out), (500, 0, 0), "{summary}");
        assert!(summary.all_up < 60_000_000, "{summary}");
    }
}

#[test]
fn one_seed_is_one_run() {
    let seed = Seeds::new(1).all.start;
    for (mode, faults) in MODES.into_iter().zip([Faults::ROUGH, Faults::STORM, Faults::ROUGH]) {
        let settings = Settings { mode, faults, ..Settings::new(300, seed) };
        let (first, second) = (boot(settings), boot(settings));
        assert_eq!(first, second, "{settings:?}");
        let other = boot(Settings { seed: seed.wrapping_add(1), ..settings });
        assert_ne!(first.trace, other.trace, "{settings:?}");
    }
}

#[test]
fn a_disk_that_lies_is_noticed() {
    let faults = Faults { lies: 1.0, ..Faults::ROUGH };
    let failure = sim::run(Settings { faults, ..Settings::new(300, 1) }).unwrap_err();
    assert!(matches!(failure.violation, Violation::NotDurable { .. }), "{failure}");
}

#[test]
fn a_rack_without_free_addresses_is_noticed() {
    let faults = Faults { squatters: 100.0, until: 10_000_000, ..Faults::CALM };
    let failure = sim::run(Settings { faults, ..Settings::new(20, 1) }).unwrap_err();
    assert!(matches!(failure.violation, Violation::Down(..)), "{failure}");
}
