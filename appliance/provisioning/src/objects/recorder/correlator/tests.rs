use std::time::{Duration, Instant};

use api::core::ObjectEvent;
use api::tinkerbell::HARDWARE;
use jiff::Timestamp;

use super::{COMBINED, Correlator, MESSAGES_MAX, NEWS, NewEvent, SUBJECTS_MAX, Subject};
use super::{UNKNOWN, WARNINGS, WINDOW};

fn subject(name: &str) -> Subject {
    let namespace = "default".to_owned();
    Subject::Object { kind: HARDWARE.kind, namespace, name: name.to_owned() }
}

fn object_event(reason: &str, message: &str, warning: bool) -> ObjectEvent {
    ObjectEvent {
        about: HARDWARE,
        namespace: "default".to_owned(),
        name: "nuc1".to_owned(),
        uid: String::new(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        warning,
        component: "test".to_owned(),
        at: Timestamp::UNIX_EPOCH,
    }
}

/// Correlator with a time that the test sets.
struct Bench {
    correlator: Correlator,
    now: Instant,
    events: u64,
}

impl Bench {
    fn new() -> Self {
        Self { correlator: Correlator::default(), now: Instant::now(), events: 0 }
    }

    fn note(&mut self, name: &str, object_event: &ObjectEvent) -> Option<NewEvent> {
        let suffix = format!("e{}", self.events);
        let event = self.correlator.note(&subject(name), object_event, self.now, || suffix);
        self.events += u64::from(event.is_some());
        event
    }

    fn failed(&mut self, name: &str, file: usize) -> Option<NewEvent> {
        self.note(name, &object_event("FetchFailed", &format!("did not get {file}"), true))
    }

    fn counts(&mut self) -> Vec<(String, u64)> {
        let due = self.correlator.due(self.now).into_iter();
        due.map(|recount| (recount.name, recount.count)).collect()
    }
}

#[test]
fn a_repetition_within_the_minute_is_counted_and_written_once() {
    let mut bench = Bench::new();
    let begun = bench.failed("nuc1", 0).unwrap();
    assert_eq!((begun.count, begun.message.as_str()), (1, "did not get 0"));
    for _ in 0..1000 {
        assert_eq!(bench.failed("nuc1", 0), None);
    }
    assert_eq!(bench.counts(), []);
    bench.now = bench.correlator.next_due().unwrap();
    assert_eq!(bench.counts(), [("nuc1.e0".to_owned(), 1001)]);
    assert_eq!(bench.counts(), [], "once");
    assert_eq!(bench.failed("nuc1", 0).unwrap().count, 1, "the next minute");
}

#[test]
fn a_machine_that_asks_for_ever_other_files_makes_few_events_and_none_of_others_is_lost() {
    let mut bench = Bench::new();
    let mut writes = 0;
    for file in 0..2000 {
        writes += usize::from(bench.failed("nuc1", file).is_some());
    }
    assert_eq!(writes, MESSAGES_MAX + 1, "then one stands for all");
    let day = bench.now + Duration::from_secs(24 * 60 * 60);
    let mut file = 0;
    while bench.now < day {
        for _ in 0..20 {
            file += 1;
            writes += usize::from(bench.failed("nuc1", file).is_some());
        }
        bench.now += Duration::from_secs(20);
        writes += bench.counts().len();
    }
    assert!(writes < 2 * (25 + 24 * 12) + 20, "{writes} writes in a day");
    assert!(bench.failed("nuc2", 0).is_some(), "another machine has a bucket of its own");
}

#[test]
fn what_was_left_out_is_counted_by_the_next_event() {
    let mut bench = Bench::new();
    for file in 0..WARNINGS.burst {
        // Each warning gets a window of its own.
        assert!(bench.failed("nuc1", file as usize).is_some());
        bench.correlator.begin_anew(&subject("nuc1"), |_| false);
    }
    assert_eq!((bench.failed("nuc1", 100), bench.failed("nuc1", 101)), (None, None));
    bench.now += WARNINGS.every;
    let event = bench.failed("nuc1", 102).unwrap();
    assert_eq!(event.count, 3);
    assert_eq!(event.message, format!("{COMBINED}did not get 102"));
}

#[test]
fn failures_leave_room_for_a_boot_and_a_boot_that_begins_anew_is_told_anew() {
    let mut bench = Bench::new();
    for file in 0..1000 {
        bench.failed("nuc1", file);
    }
    let (asked, got) =
        (object_event("AskedForAddress", "asked", false), object_event("GotAddress", "got", false));
    assert!(bench.note("nuc1", &asked).is_some() && bench.note("nuc1", &got).is_some());
    assert!(bench.note("nuc1", &asked).is_none());
    bench.correlator.begin_anew(&subject("nuc1"), |reason| reason.starts_with("Asked"));
    assert!(bench.note("nuc1", &asked).is_none(), "firmware repeats its question");
    assert!(bench.note("nuc1", &got).is_some());
    let boots = (0..1000).filter(|_| {
        bench.correlator.begin_anew(&subject("nuc1"), |_| false);
        bench.note("nuc1", &got).is_some()
    });
    assert_eq!(boots.count(), NEWS.burst as usize - 3, "however often it boots");
}

#[test]
fn unknown_machines_share_one_bucket() {
    let mut bench = Bench::new();
    let mut written = 0;
    for minute in 0..60 {
        for mac in 0..1000 {
            let message = format!("{minute}-{mac} asked for an address");
            let unknown = object_event("UnknownMachine", &message, true);
            let suffix = || "e".to_owned();
            let noted =
                bench.correlator.note(&Subject::UnknownMachines, &unknown, bench.now, suffix);
            written += noted.iter().count();
        }
        bench.now += WINDOW;
        bench.counts();
    }
    assert!(written <= 2 * UNKNOWN.burst as usize, "{written} Events in an hour");
}

#[test]
fn subjects_are_bounded_and_no_count_is_lost_with_one() {
    let mut bench = Bench::new();
    for number in 0..=SUBJECTS_MAX {
        for _ in 0..2 {
            bench.failed(&format!("nuc{number}"), 0);
        }
        bench.now += Duration::from_millis(1);
    }
    assert_eq!(bench.correlator.subjects.len(), SUBJECTS_MAX);
    assert_eq!(bench.counts(), [("nuc1.e0".to_owned(), 2)], "the longest silent one");
    assert_eq!(bench.correlator.last().len(), SUBJECTS_MAX);
}
