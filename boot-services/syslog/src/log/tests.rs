//! Tests the limits of the log.

use std::time::{Duration, SystemTime};

use proptest::prelude::{any, prop, proptest};

use super::{Entry, Log, MAX_MACHINES, MAX_UNKNOWN};
use crate::parse;

fn entry(seconds: u64, text: &str) -> Entry {
    let received = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Entry { received, line: parse(text.as_bytes()) }
}

fn texts(log: &Log, machine: &str, count: usize) -> Vec<String> {
    log.tail(machine, count).into_iter().map(|entry| entry.line.text).collect()
}

#[test]
fn the_last_lines_of_a_machine_are_its_own() {
    let log = Log::default();
    for number in 0..5 {
        log.push("nuc1", entry(number, &format!("line {number}")));
        log.push("nuc2", entry(number, "other"));
    }
    assert_eq!(texts(&log, "nuc1", 2), ["line 3", "line 4"]);
    assert_eq!(texts(&log, "nuc1", 100).len(), 5);
    assert!(texts(&log, "nuc3", 1).is_empty());
    log.forget("nuc1");
    assert!(texts(&log, "nuc1", 1).is_empty());
    log.forget("nuc2");
    assert_eq!(log.bytes(), 0);
}

#[test]
fn one_machine_that_talks_leaves_the_others_their_lines() {
    let log = Log::new(10_000, 12_000);
    log.push("quiet", entry(0, "the only line"));
    for number in 0..1000 {
        log.push("loud", entry(number, &"x".repeat(500)));
        log.push("louder", entry(number, &"x".repeat(1000)));
    }
    assert_eq!(texts(&log, "quiet", 9), ["the only line"]);
    assert!(log.bytes() <= 12_000);
    assert!(!texts(&log, "loud", 9).is_empty());
}

#[test]
fn a_long_line_makes_room_with_more_than_one_machine() {
    let log = Log::new(4 << 10, 8 << 10);
    for machine in ["a", "b", "c"] {
        log.push(machine, entry(1, &"x".repeat(1080)));
        log.push(machine, entry(2, &"x".repeat(1080)));
    }
    assert!(log.bytes() > 7 << 10, "{}", log.bytes());
    log.push("d", entry(3, &"x".repeat(2000)));
    assert!(log.bytes() <= 8 << 10, "{}", log.bytes());
    assert_eq!(texts(&log, "d", 9).len(), 1);
}

#[test]
fn a_crowd_of_senders_is_bounded() {
    let log = Log::default();
    for number in 0..MAX_MACHINES as u64 + 50 {
        log.push(&format!("nuc{number}"), entry(number, "here"));
    }
    assert!(texts(&log, "nuc49", 1).is_empty(), "silent for longest");
    assert_eq!(texts(&log, "nuc50", 1), ["here"]);
}

#[test]
fn forged_addresses_take_no_place_of_a_machine() {
    let log = Log::default();
    for number in 0..1500 {
        // The order does not depend on the clock, which is set back here.
        log.push(&format!("nuc{number}"), entry(2000 - number, "here"));
    }
    for number in 0..5000 {
        log.push_unknown(&format!("10.0.{}.{}", number / 250, number % 250), entry(9999, "forged"));
    }
    let left = (0..1500).filter(|number| texts(&log, &format!("nuc{number}"), 1) == ["here"]);
    assert_eq!(left.count(), 1500);
    let state = log.state.lock().unwrap();
    assert_eq!(state.machines.len(), 1500 + MAX_UNKNOWN);
    assert_eq!((state.order.len(), state.unknown.len()), (1500, MAX_UNKNOWN));
}

proptest! {
    #[test]
    fn both_limits_hold(lines in prop::collection::vec((0_u8..5, any::<u8>()), 0..300)) {
        let log = Log::new(2000, 5000);
        for (machine, length) in lines {
            let machine = machine.to_string();
            log.push(&machine, entry(0, &"y".repeat(length.into())));
            assert!(log.bytes() <= 5000);
            let bytes: usize = log.tail(&machine, usize::MAX).iter().map(Entry::cost).sum();
            assert!(bytes <= 2000);
        }
        let machines = ["0", "1", "2", "3", "4"];
        let all = machines.iter().flat_map(|machine| log.tail(machine, usize::MAX));
        assert_eq!(all.map(|entry| entry.cost()).sum::<usize>(), log.bytes());
    }
}
