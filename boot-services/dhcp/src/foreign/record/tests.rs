use super::{Record, Situation};
use crate::foreign::Foreign;
use std::fs;
use std::time::{Duration, SystemTime};

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn clean() -> Record {
    let situation = Situation { boot_id: "8e4d".to_owned(), index: 3, carrier_changes: 2 };
    Record::Clean { situation, at: at(1_792_394_041) }
}

fn stopped() -> Foreign {
    Foreign {
        server: [192, 0, 2, 1].into(),
        mac: Some(stdx::MacAddr([2, 0, 0, 0, 0, 1])),
        interface: String::new(),
        offered: Some([192, 0, 2, 77].into()),
        when: at(1_792_394_041),
    }
}

#[test]
fn records_are_lines_of_text() {
    let named = Foreign { mac: None, offered: None, ..stopped() };
    for (record, text) in [
        (clean(), "clean boot=8e4d index=3 carrier-changes=2 at=1792394041"),
        (
            Record::Stopped(stopped()),
            "stopped server=192.0.2.1 mac=02:00:00:00:00:01 offered=192.0.2.77 at=1792394041",
        ),
        (Record::Stopped(named), "stopped server=192.0.2.1 at=1792394041"),
    ] {
        assert_eq!(record.to_string(), text);
        assert_eq!(text.parse(), Ok(record));
    }
}

#[test]
fn what_is_no_record_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dhcp-eth1");
    assert_eq!(Record::load(&path).unwrap(), None);
    for text in [
        &b""[..],
        b"clean",
        b"clean boot=8e4d index=3 carrier-changes=2",
        b"clean boot=8e4d index=-3 carrier-changes=2 at=1",
        b"stopped at=1",
        b"stopped server=192.0.2.1 at=18446744073709551615",
        b"serving at=1",
        b"\xff\xfe",
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(Record::load(&path).unwrap(), None, "{text:?}");
    }
}

#[test]
fn a_file_is_replaced_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dhcp-eth1");
    for record in [clean(), Record::Stopped(stopped()), clean()] {
        Record::store(Some(&record), &path).unwrap();
        assert_eq!(Record::load(&path).unwrap(), Some(record));
    }
    Record::store(None, &path).unwrap();
    Record::store(None, &path).unwrap();
    assert_eq!(Record::load(&path).unwrap(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left beside it");
    assert!(Record::store(None, &folder.path().join("none/dhcp-eth1")).is_err());
}

#[test]
fn a_probe_is_recent_for_ten_minutes() {
    assert!(Record::is_recent(at(1000), at(1000)));
    assert!(Record::is_recent(at(1000), at(1599)));
    assert!(!Record::is_recent(at(1000), at(1600)));
    assert!(!Record::is_recent(at(1000), at(999)), "the clock was set back");
}

#[test]
fn a_full_disk_keeps_no_record_that_would_serve_beside_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dhcp-eth1");
    let full =
        |_: Option<&Record>, _: &std::path::Path| Err(std::io::ErrorKind::StorageFull.into());
    let (clean, stopped) = (clean(), Record::Stopped(stopped()));
    for (old, new, left) in [
        (&clean, Some(&stopped), None),
        (&stopped, Some(&stopped), Some(&stopped)),
        (&stopped, Some(&clean), None),
        (&stopped, None, None),
    ] {
        Record::store(Some(old), &path).unwrap();
        Record::store_by(full, new, &path).unwrap_err();
        assert_eq!(Record::load(&path).unwrap().as_ref(), left, "{old:?} {new:?}");
    }
}
