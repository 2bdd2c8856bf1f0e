//! Tests of the rules over all pairs of evidence.

use std::time::Duration;

use bmc::Power;

use super::{Confidence, Evidence, FRESH, MachineSightings, SILENT, Sighting, Source, conclude};

/// Kind of evidence in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Nothing,
    ReportsOn,
    ReportsOff,
    ReportsUnknown,
    /// Request 5 s ago.
    Fresh,
    /// Request 10 min ago.
    Old,
    /// Shutdown acknowledged 5 s ago.
    Stopping,
    /// Shutdown acknowledged 60 s ago.
    Stopped,
}

use Piece::{Fresh, Nothing, Old, ReportsOff, ReportsOn, ReportsUnknown, Stopped, Stopping};

impl Piece {
    fn add(self, source: Source, evidence: &mut Evidence) {
        let seen = |seconds| Sighting { source, age: Duration::from_secs(seconds) };
        match self {
            Nothing => {}
            ReportsOn => evidence.report = Some(Power::On),
            ReportsOff => evidence.report = Some(Power::Off),
            ReportsUnknown => evidence.report = Some(Power::Unknown),
            Fresh => evidence.sightings.push(seen(5)),
            Old => evidence.sightings.push(seen(600)),
            Stopping => evidence.shutdown = Some(Duration::from_secs(5)),
            Stopped => evidence.shutdown = Some(Duration::from_secs(60)),
        }
    }
}

/// State for each pair of evidence of different kinds, and for each kind alone.
const PAIRS: [(Piece, Piece, Power); 30] = [
    (Nothing, Nothing, Power::Unknown),
    (ReportsOn, Nothing, Power::On),
    (ReportsOff, Nothing, Power::Off),
    (ReportsUnknown, Nothing, Power::Unknown),
    (Fresh, Nothing, Power::On),
    (Old, Nothing, Power::Unknown),
    (Stopping, Nothing, Power::Unknown),
    (Stopped, Nothing, Power::Off),
    (ReportsOn, Fresh, Power::On),
    (ReportsOn, Old, Power::On),
    (ReportsOn, Stopping, Power::On),
    (ReportsOn, Stopped, Power::On),
    (ReportsOff, Fresh, Power::Unknown),
    (ReportsOff, Old, Power::Off),
    (ReportsOff, Stopping, Power::Off),
    (ReportsOff, Stopped, Power::Off),
    (ReportsUnknown, Fresh, Power::On),
    (ReportsUnknown, Old, Power::Unknown),
    (ReportsUnknown, Stopping, Power::Unknown),
    (ReportsUnknown, Stopped, Power::Off),
    (Fresh, Old, Power::On),
    (Fresh, Fresh, Power::On),
    (Old, Old, Power::Unknown),
    // The request belongs to the shutdown.
    (Fresh, Stopping, Power::Unknown),
    // The request came 55 s after the acknowledgement.
    (Fresh, Stopped, Power::On),
    (Old, Stopping, Power::Unknown),
    (Old, Stopped, Power::Off),
    (Old, Fresh, Power::On),
    (Stopping, Stopping, Power::Unknown),
    (Stopped, Stopped, Power::Off),
];

#[test]
fn every_pair_of_evidence_has_a_state_with_a_reason() {
    for (one, two, power) in PAIRS {
        for first in Source::ALL {
            for second in Source::ALL {
                let mut evidence = Evidence::default();
                one.add(first, &mut evidence);
                two.add(second, &mut evidence);
                let found = conclude(&evidence);
                assert_eq!(found.power, power, "{one:?} {first:?} {two:?} {second:?}");
                let is_known = power != Power::Unknown;
                assert_eq!(found.confidence > Confidence::Nothing, is_known, "{found:?}");
                assert!(!found.reason.is_empty() && !found.summary.is_empty(), "{found:?}");
            }
        }
    }
}

#[test]
fn an_answer_to_arp_proves_nothing_where_a_management_engine_sends_it() {
    for (report, power) in [
        (None, Power::Unknown),
        (Some(Power::On), Power::On),
        (Some(Power::Off), Power::Off),
        (Some(Power::Unknown), Power::Unknown),
    ] {
        let arp = Sighting { source: Source::Arp, age: Duration::ZERO };
        let evidence =
            Evidence { report, sightings: vec![arp], has_engine: true, ..Evidence::default() };
        assert_eq!(conclude(&evidence).power, power, "{report:?}");
    }
}

#[test]
fn a_request_from_before_a_shutdown_does_not_confirm_that_the_machine_was_switched_on() {
    let second = Duration::from_secs;
    let seen = |age| {
        let sightings = vec![Sighting { source: Source::Hook, age: second(age) }];
        let shutdown = Some(second(15));
        conclude(&Evidence { sightings, shutdown, is_woken: true, ..Evidence::default() })
    };
    for (age, power) in [(20, Power::Unknown), (6, Power::Unknown), (4, Power::On)] {
        assert_eq!(seen(age).power, power, "{age}");
    }
    let reason = "it was switched on after a shutdown, and the box received no request of it since";
    assert_eq!(seen(20).reason, reason);
}

#[test]
fn an_answer_to_arp_counts_longer_because_the_kernel_asks_seldom() {
    let seen = |age| {
        let age = Duration::from_secs(age);
        let sightings = vec![
            Sighting { source: Source::Dhcp, age: Duration::from_secs(40) },
            Sighting { source: Source::Arp, age },
        ];
        conclude(&Evidence { sightings, ..Evidence::default() })
    };
    assert_eq!(seen(55).power, Power::On);
    assert_eq!(seen(55).summary, "it answered ARP within the last 60 s");
    assert_eq!(seen(61).power, Power::Unknown);
    let summary = "it sent a DHCP request more than 30 s ago, and silence does not mean off";
    assert_eq!(seen(61).summary, summary);
}

#[test]
fn the_end_of_steady_sightings_after_a_shutdown_means_off() {
    let after = |source, shutdown| {
        let sightings = vec![Sighting { source, age: Duration::from_secs(70) }];
        let shutdown = Some(Duration::from_secs(shutdown));
        conclude(&Evidence { sightings, shutdown, ..Evidence::default() })
    };
    let arp = after(Source::Arp, 100);
    assert_eq!((arp.power, arp.confidence), (Power::Off, Confidence::Inferred));
    let reason = "it acknowledged a shutdown and is silent since; it answered ARP 70 s ago";
    assert_eq!(arp.reason, reason);
    assert_eq!(after(Source::Hook, 100).power, Power::Off);
    assert_eq!(after(Source::Dhcp, 100).power, Power::Unknown, "it may have started again");
    assert_eq!(after(Source::Hook, 3600).power, Power::Unknown, "it ran again for an hour");
}

#[test]
fn a_machine_that_may_not_wake_says_so_where_no_bmc_reports() {
    let sightings = vec![Sighting { source: Source::Hook, age: Duration::from_secs(4) }];
    let seen = MachineSightings { sightings, ..MachineSightings::default() };
    assert!(seen.can_power_off());
    let reason = "the power hook of its system polled the box 4 s ago";
    assert_eq!(seen.conclude(None, false).reason, reason);
    let unarmed = MachineSightings { is_armed: Some(false), ..seen };
    let found = unarmed.conclude(None, false);
    assert_eq!(
        found.reason,
        format!("{reason}; its system reports that Wake-on-LAN is off, so it may not wake")
    );
    assert!(found.summary.ends_with("so it may not wake"), "{}", found.summary);
    assert_eq!(unarmed.conclude(Some(Power::On), false).reason, "its BMC reports on");
}

#[test]
fn a_contradiction_names_both_sides() {
    let agent = Sighting { source: Source::Agent, age: Duration::from_secs(10) };
    let evidence =
        Evidence { report: Some(Power::Off), sightings: vec![agent], ..Evidence::default() };
    let found = conclude(&evidence);
    assert_eq!(found.power, Power::Unknown);
    assert_eq!(found.reason, "its BMC reports off, but its agent sent a message 10 s ago");
    let summary = "its BMC reports off, but its agent sent a message within the last 30 s";
    assert_eq!(found.summary, summary);
}

#[test]
fn a_summary_changes_only_with_the_kind_of_evidence() {
    let summary = |seconds| {
        let seen = Sighting { source: Source::Dhcp, age: Duration::from_secs(seconds) };
        let evidence = Evidence { sightings: vec![seen], ..Evidence::default() };
        conclude(&evidence).summary
    };
    assert_eq!(summary(1), summary(FRESH.as_secs()));
    assert_eq!(summary(FRESH.as_secs() + 1), summary(100_000));
    assert_ne!(summary(FRESH.as_secs()), summary(FRESH.as_secs() + 1));
}

#[test]
fn silence_is_known_only_after_the_box_has_listened() {
    let with = |listening, age: Option<Duration>| {
        let seen = age.map(|age| Sighting { source: Source::Boot, age });
        let sightings = seen.into_iter().collect();
        let machine = MachineSightings { sightings, listening, ..MachineSightings::default() };
        machine.are_silent(&machine.conclude(None, false))
    };
    let second = Duration::from_secs(1);
    assert!(with(FRESH, None));
    assert!(!with(FRESH - second, None), "an agent may not have had the time");
    assert!(with(FRESH, Some(SILENT)));
    assert!(!with(FRESH, Some(SILENT - second)));
}
