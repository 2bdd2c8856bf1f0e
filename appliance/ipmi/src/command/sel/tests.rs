use super::*;

/// Record of table 32-1: upper critical threshold of temperature sensor 30h.
const HOT: [u8; 16] = [
    0x01, 0x00, 0x02, 0x00, 0x5E, 0x0B, 0x69, 0x20, 0x00, 0x04, 0x01, 0x30, 0x01, 0x59, 0x5A, 0x50,
];

#[test]
fn an_event_says_sensor_state_and_direction() {
    let record = SelRecord::parse(HOT);
    assert_eq!((record.id, record.time), (1, Some(0x690B_5E00)));
    let said = record.content.to_string();
    assert_eq!(said, "Temperature #0x30: Upper Critical going high (asserted)");
    let mut ended = HOT;
    ended[12] |= 0x80;
    let said = SelRecord::parse(ended).content.to_string();
    assert!(said.ends_with("going high (deasserted)"), "{said}");
}

#[test]
fn a_clock_that_was_not_set_gives_no_time() {
    for time in [0_u32, 90, CLOCK_SET, NO_TIME] {
        let mut record = HOT;
        record[3..7].copy_from_slice(&time.to_le_bytes());
        assert_eq!(SelRecord::parse(record).time, None, "{time}");
    }
}

#[test]
fn records_of_the_manufacturer_show_their_bytes() {
    let mut record = HOT;
    record[2] = 0xDF;
    let said = SelRecord::parse(record).content.to_string();
    assert_eq!(said, "manufacturer's record, type 0xdf: 200004013001595a50");
    record[2] = 0xE0;
    let record = SelRecord::parse(record);
    assert_eq!(record.time, None);
    assert!(record.content.to_string().ends_with("005e0b69200004013001595a50"));
}

#[test]
fn every_event_has_words() {
    for sensor_type in 0..=u8::MAX {
        for event_type in 0..0x80 {
            for offset in 0..16 {
                let (is_deasserted, sensor) = (false, 7);
                let event = SensorEvent { sensor_type, sensor, event_type, is_deasserted, offset };
                assert!(event.to_string().contains("#0x07: "), "{event}");
            }
        }
    }
}

#[test]
fn a_list_ends() {
    let reply = |next: u16| {
        let data = [&next.to_le_bytes()[..], &HOT].concat();
        GetSelEntry::first(0).reply(&data).unwrap().0
    };
    assert_eq!(reply(2), Some(2));
    assert_eq!(reply(0xFFFF), None);
    assert_eq!(reply(1), None, "a record that is its own successor");
    assert_eq!(GetSelEntry { reservation: 0x0201, id: 0x0403 }.data(), [1, 2, 3, 4, 0, 0xFF]);
}

#[test]
fn the_state_of_the_log_is_read() {
    let data = [0x51, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x82];
    let info = SelInfo { entries: 3, has_reservation: true, overflow: true };
    assert_eq!(GetSelInfo.reply(&data), Ok(info));
    assert_eq!(GetSelInfo.reply(&data[..13]), Err(Malformed::Short("SEL operation support")));
}
