use super::{Page, Record, Severity};
use crate::message::{Answer, Element};

/// Output of a method in a recorded answer.
fn output(name: &str, xml: &str) -> Element {
    Answer::parse(xml.as_bytes()).unwrap().expect(name).unwrap()
}

fn page(records: &[&str], end: &str) -> Element {
    let child = |name: &str, text: &str| Element {
        name: name.to_owned(),
        text: text.to_owned(),
        ..Element::default()
    };
    let records = records.iter().map(|record| child("RecordArray", record));
    let ends = [child("IterationIdentifier", "7"), child("NoMoreRecords", end)];
    Element { children: records.chain(ends).collect(), ..Element::default() }
}

#[test]
fn a_recorded_log_is_decoded() {
    let xml = include_str!("../../recordings/log-records.xml");
    let page = Page::read(&output("GetRecords_OUTPUT", xml)).unwrap();
    assert_eq!((page.records.len(), page.next), (3, None));
    let login = page.records[0];
    let expected = Record {
        // 2024-01-06 03:26:27 UTC
        time: 1_704_511_587,
        sensor_type: 0x06,
        event_type: 0x6F,
        offset: 5,
        is_deasserted: false,
        severity: Severity::Critical,
        sensor: 0xFF,
        data: [0xAA, 10, 0, 0, 0, 0, 0, 0],
    };
    assert_eq!(login, expected);
    assert_eq!(login.detail().as_deref(), Some("10 refused logins"));
    assert_eq!(login.severity.alarm(), Some("critical"));
    let start = page.records[1];
    assert_eq!((start.sensor_type, start.offset, start.severity), (0x0F, 2, Severity::Monitor));
    assert_eq!(start.detail().as_deref(), Some("PCI configuration"));
    assert!(start.time < login.time, "the newest record is the first");
}

#[test]
fn empty_records_are_left_out() {
    let zero = "AAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let records = ["Y8iYZf8GbwVoEP8mYaoKAAAAAAAA", zero, zero];
    let read = Page::read(&page(&records, "false")).unwrap();
    assert_eq!((read.records.len(), read.next.as_deref()), (1, Some("7")));
    assert_eq!(Page::read(&page(&[], "true")).unwrap(), Page::default());
}

#[test]
fn a_record_of_another_length_is_an_error() {
    let record = "Y8iYZf8GbwVoEP8mYaoKAAAAAAAA";
    for wrong in ["", "AAAA", "Y8iYZf8GbwVoEP8mYaoKAAAAAAAAAAAA", "Y8iYZf8GbwVoEP8mYaoKAAAAAAA?"] {
        assert!(Page::read(&page(&[record, wrong], "true")).is_err(), "{wrong:?}");
    }
    assert!(Page::read(&page(&[record; 390], "true")).is_ok());
    assert!(Page::read(&page(&[record; 391], "true")).is_err());
}

#[test]
fn an_unknown_event_has_no_detail() {
    let mut bytes = [0xFF; 21];
    let record = Record::parse(bytes);
    assert_eq!((record.detail(), record.severity), (None, Severity::Unspecified(0xFF)));
    assert!(record.is_deasserted);
    // The firmware's progress with a number behind the table.
    (bytes[5], bytes[7], bytes[14]) = (0x0F, 2, 200);
    assert_eq!(Record::parse(bytes).detail(), None);
}
