use api::core::ObjectEvent;
use api::tinkerbell::HARDWARE;
use jiff::{SignedDuration, Timestamp};

use super::{EventRecord, Line, Outcome, history, times};
use crate::boot_event::{BootEvent, Stage, Via};

const ZERO: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub(super) fn record(millis: i64, moment: &BootEvent) -> EventRecord {
    let happening = ObjectEvent {
        about: HARDWARE,
        namespace: "default".into(),
        name: "nuc1".into(),
        uid: String::new(),
        reason: moment.reason().into(),
        message: moment.sentence(),
        warning: moment.warning(),
        component: "test".into(),
        at: ZERO + SignedDuration::from_millis(millis),
    };
    EventRecord::from_event(&happening.to_event("1")).unwrap()
}

fn install() -> Vec<EventRecord> {
    let firmware = Stage::UefiFirmware;
    let ended = |name: &str, millis| BootEvent::ActionEnded {
        name: name.into(),
        ok: true,
        message: String::new(),
        millis,
    };
    [
        (-2_000, BootEvent::PoweredOff),
        (-1_000, BootEvent::NetworkBootArmed),
        (0, BootEvent::PoweredOn),
        (5_000, BootEvent::AskedForAddress { stage: firmware }),
        (6_000, BootEvent::GotAddress { ip: [10, 77, 0, 11].into(), stage: firmware }),
        (
            7_000,
            BootEvent::FetchedLoader {
                file: "snponly.efi".into(),
                via: Via::Tftp,
                bytes: 262_144,
                millis: 300,
            },
        ),
        (8_000, BootEvent::GotAddress { ip: [10, 77, 0, 11].into(), stage: Stage::Ipxe }),
        (9_000, BootEvent::FetchedScript),
        (10_000, BootEvent::FetchedKernel { bytes: 9_000_000, millis: 900 }),
        (13_000, BootEvent::AgentHello { version: "0.1.0".into() }),
        (33_000, ended("stream-image", 20_000)),
        (34_000, ended("reboot", 500)),
        (40_000, BootEvent::SentToDisk),
        (52_000, BootEvent::AskedMetadata { path: "/latest".into() }),
        (60_000, BootEvent::PhonedHome { hostname: "nuc1".into() }),
    ]
    .iter()
    .map(|(millis, moment)| record(*millis, moment))
    .collect()
}

fn shown(lines: &[Line]) -> String {
    lines.iter().map(|it| format!("{} {}\n", it.offset_millis, it.sentence)).collect()
}

#[test]
fn a_story_counts_from_its_power_on_whatever_order_it_comes_in() {
    let want = history(install());
    assert!(shown(&want).starts_with("-2000 is off, according to its BMC\n-1000 will boot"));
    assert!(shown(&want).ends_with("60000 phoned home as nuc1: the installed system is up\n"));
    let mut turned = install();
    turned.reverse();
    assert_eq!(history(turned), want);
}

#[test]
fn an_earlier_boot_is_another_story() {
    let mut events: Vec<EventRecord> = install();
    for event in &mut events {
        event.at -= SignedDuration::from_secs(70);
    }
    events.extend(install());
    assert_eq!(history(events), history(install()));
}

#[test]
fn without_a_bmc_silence_separates() {
    let hour = 3_600_000;
    let asked = BootEvent::AskedForAddress { stage: Stage::BiosFirmware };
    let events =
        vec![record(0, &asked), record(hour, &asked), record(hour + 3, &BootEvent::FetchedScript)];
    let offsets: Vec<_> = history(events).iter().map(|it| it.offset_millis).collect();
    assert_eq!(offsets, [0, 3]);
    assert_eq!(history(Vec::new()), []);
}

#[test]
fn what_is_about_a_workflow_says_so() {
    let mut event = record(0, &BootEvent::PoweredOn);
    event.kind = "Workflow".into();
    event.name = "install".into();
    event.message = "every action succeeded".into();
    assert_eq!(history(vec![event])[0].sentence, "workflow install: every action succeeded");
}

#[test]
fn the_table_of_times() {
    let spans: Vec<String> = times(&history(install()))
        .iter()
        .map(|it| format!("{} {} {}", it.label, it.millis, it.total_millis))
        .collect();
    let want = [
        "first request 5000 5000",
        "address 1000 6000",
        "boot loader 1000 7000",
        "agent's kernel 3000 10000",
        "agent 3000 13000",
        "action stream-image 20000 33000",
        "action reboot 1000 34000",
        "disk boot 6000 40000",
        "first boot requests its metadata 12000 52000",
        "phoned home 8000 60000",
    ];
    assert_eq!(spans, want);
    assert_eq!(times(&[]), []);
}

#[test]
fn events_of_others_are_read_too() {
    let event = serde_json::json!({
        "metadata": { "resourceVersion": "7" },
        "involvedObject": { "kind": "Hardware", "name": "nuc1" },
        "eventTime": null,
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "type": "Warning",
        "message": "looked odd",
    });
    let record = EventRecord::from_event(&event).unwrap();
    assert_eq!((record.revision, record.warning), (7, true));
    assert_eq!(EventRecord::from_event(&serde_json::json!({ "message": "no time" })), None);
}

#[test]
fn a_story_ends_at_home_or_in_failure() {
    let ends: Vec<_> = history(install()).iter().filter_map(Line::end).collect();
    assert_eq!(ends, [Outcome::PhonedHome]);
    let failed =
        BootEvent::ActionEnded { name: "a".into(), ok: false, message: String::new(), millis: 1 };
    assert_eq!(history(vec![record(0, &failed)])[0].end(), Some(Outcome::Failed));
    let mut boot = record(0, &BootEvent::PoweredOff);
    (boot.kind, boot.reason) = ("Workflow".into(), "BootFailed".into());
    assert_eq!(history(vec![boot])[0].end(), Some(Outcome::Failed));
}
