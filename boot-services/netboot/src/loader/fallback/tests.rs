//! Tests boots of machines, event by event.

use std::time::{Duration, Instant};

use proptest::prelude::{any, prop, proptest};

use super::{BIOS, Decision, EFI, Event, Fallback, LoaderState, START_TIMEOUT};

/// Seconds after the start, the event, and the expected decision.
type Step<'a> = (u64, Event<'a>, &'a str);

#[track_caller]
fn run(machine: &mut Fallback, steps: &[Step<'_>]) {
    let start = Instant::now();
    for (seconds, event, wanted) in steps {
        let decision = machine.next(*event, start + Duration::from_secs(*seconds));
        let said = match decision {
            Decision::Nothing => String::new(),
            Decision::Works => "works".to_owned(),
            Decision::Next { from, to } => format!("{from} -> {to}"),
        };
        assert_eq!(said, *wanted, "{event:?} after {seconds} s");
    }
}

const ASKED: Event<'_> = Event::Requested;
const IPXE: Event<'_> = Event::Ipxe;
const FULL: Event<'_> = Event::Fetched("ipxe.efi");
const ONLY: Event<'_> = Event::Fetched("snponly.efi");

#[test]
fn a_loader_that_works_is_remembered() {
    let mut machine = Fallback::new(EFI, "ipxe.efi");
    run(&mut machine, &[(0, ASKED, ""), (2, FULL, ""), (8, IPXE, "works"), (9, IPXE, "")]);
    assert_eq!(machine.learned().to_string(), "ipxe.efi works");
    // The next boot, hours later, changes nothing.
    run(&mut machine, &[(9000, ASKED, ""), (9002, FULL, ""), (9008, IPXE, "")]);
}

#[test]
fn silence_after_a_whole_loader_leads_to_the_next() {
    let mut machine = Fallback::new(EFI, "ipxe.efi");
    run(
        &mut machine,
        &[
            (0, ASKED, ""),
            (2, FULL, ""),
            (40, ASKED, "ipxe.efi -> snponly.efi"),
            (42, ONLY, ""),
            (50, IPXE, "works"),
        ],
    );
    assert_eq!(machine.loader(), "snponly.efi");
    assert_eq!(machine.learned().to_string(), "snponly.efi works");
}

#[test]
fn behind_the_last_comes_the_first() {
    let mut machine = Fallback::new(BIOS, "ipxe.pxe");
    let fetched = Event::Fetched("ipxe.pxe");
    run(&mut machine, &[(0, fetched, ""), (31, ASKED, "ipxe.pxe -> undionly.kpxe")]);
}

#[test]
fn impatience_and_half_a_file_are_no_failure() {
    let mut machine = Fallback::new(EFI, "ipxe.efi");
    run(
        &mut machine,
        &[
            // Repeated requests without a fetch: a problem of the network, not of the loader.
            (0, ASKED, ""),
            (60, ASKED, ""),
            // Firmware that tries HTTP after TFTP, each from the beginning.
            (61, FULL, ""),
            (63, ASKED, ""),
            (65, FULL, ""),
            (70, IPXE, "works"),
            // A fetch of another file, which an operator chose.
            (100, Event::Fetched("shimx64.efi"), ""),
            (200, ASKED, ""),
        ],
    );
}

#[test]
fn a_proven_loader_is_not_left_for_one_bad_boot() {
    let mut machine = Fallback::from("ipxe.efi works".parse::<LoaderState>().unwrap());
    run(&mut machine, &[(0, FULL, ""), (99, ASKED, "")]);
    assert_eq!(machine.learned().to_string(), "ipxe.efi failed 1");
    run(&mut machine, &[(100, FULL, ""), (109, IPXE, "works")]);
    assert_eq!(machine.learned().to_string(), "ipxe.efi works");
    run(
        &mut machine,
        &[
            (200, FULL, ""),
            (300, ASKED, ""),
            (301, FULL, ""),
            (400, ASKED, ""),
            (401, FULL, ""),
            (500, ASKED, "ipxe.efi -> snponly.efi"),
        ],
    );
    assert_eq!(machine.learned().to_string(), "snponly.efi trying");
}

#[test]
fn patience_ends_when_it_says() {
    let start = Instant::now();
    for (waited, wanted) in
        [(START_TIMEOUT - Duration::from_millis(1), false), (START_TIMEOUT, true)]
    {
        let mut machine = Fallback::new(EFI, "no such loader");
        assert_eq!(machine.loader(), "ipxe.efi");
        machine.next(FULL, start);
        let left = machine.next(ASKED, start + waited) != Decision::Nothing;
        assert_eq!(left, wanted, "after {waited:?}");
    }
}

#[test]
fn what_nobody_wrote_is_not_read() {
    for text in [
        "",
        "works",
        "ipxe.efi",
        "ipxe.efi works well",
        "ipxe.efi failed",
        "ipxe.efi failed 3",
        "ipxe.efi failed -1",
        "other.efi works",
        "ipxe.efi trying 1",
    ] {
        assert!(text.parse::<LoaderState>().is_err(), "{text:?}");
    }
}

proptest! {
    #[test]
    fn what_is_kept_reads_as_it_was(
        events in prop::collection::vec((any::<u8>(), 0_u64..100), 0..60),
        bios: bool,
    ) {
        let row = if bios { BIOS } else { EFI };
        let mut machine = Fallback::new(row, row[0]);
        let mut now = Instant::now();
        for (event, seconds) in events {
            now += Duration::from_secs(seconds);
            let loader = machine.loader();
            let event = match event % 3 {
                0 => Event::Requested,
                1 => Event::Ipxe,
                _ => Event::Fetched(loader),
            };
            let decision = machine.next(event, now);
            assert!(row.contains(&machine.loader()));
            let changed = matches!(decision, Decision::Next { .. });
            assert_eq!(changed, machine.loader() != loader);
            let text = machine.learned().to_string();
            assert!(text.len() < 64);
            assert_eq!(text.parse(), Ok(machine.learned()));
        }
    }
}
