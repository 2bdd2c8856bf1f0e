use super::*;

/// Body of a full sensor record: a temperature of one degree a step, named `CPU Temp`.
fn full() -> Vec<u8> {
    let mut body = vec![0x20, 0, 0x30, 3, 1, 0x7F, 0x68, 0x01, 0x01, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    body.extend([0, 1, 0, 0, 0, 0, 0]);
    body.extend([0; 17]);
    body.push(0xC0 | 8);
    body.extend(b"CPU Temp");
    body
}

#[test]
fn a_full_record_has_name_unit_and_conversion() {
    let record = SensorRecord::parse(FULL, &full()).unwrap();
    assert_eq!((record.name.as_str(), record.number, record.unit), ("CPU Temp", 0x30, "C"));
    assert!(record.is_local && record.has_thresholds);
    assert_eq!(record.conversion.unwrap().value(42), Some(42.0));
}

#[test]
fn a_compact_record_has_no_value() {
    let mut body = vec![0x20, 0, 0x31, 7, 1, 0, 0, 0x08, 0x6F, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    body.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    body.push(0xC0 | 4);
    body.extend(b"PSU1");
    let record = SensorRecord::parse(COMPACT, &body).unwrap();
    assert_eq!((record.name.as_str(), record.unit), ("PSU1", ""));
    assert!(!record.has_thresholds && record.conversion.is_none());
    assert!(SensorRecord::parse(COMPACT, &body[..26]).is_err());
    assert_eq!(SensorRecord::parse(0x11, &body), Err(Malformed::Field("SDR type")));
}

#[test]
fn a_sensor_of_another_controller_is_not_local() {
    let mut body = full();
    body[0] = 0x2C;
    assert!(!SensorRecord::parse(FULL, &body).unwrap().is_local);
}

#[test]
fn names_in_every_encoding() {
    let name = |bytes: &[u8]| id_string(&mut Reader::new(bytes)).unwrap();
    assert_eq!(name(&[0xC3, b'F', b'A', b'N', b'!']), "FAN");
    assert_eq!(name(&[0xDF, b'F', b'A', b'N']), "FAN", "a length beyond the record");
    assert_eq!(name(&[0x42, 0x12, 0x3C]), "123.");
    // The example of §43.15: "IPMI" in six bits each.
    assert_eq!(name(&[0x83, 0x29, 0xDC, 0xA6]), "IPMI");
    assert_eq!(name(&[0xC4, b'A', 0x1B, b'[', b'B']), "A[B", "no control characters");
    assert_eq!(id_string(&mut Reader::new(&[])), Err(Malformed::Short("type of the sensor name")));
}

#[test]
fn parts_are_no_longer_than_requested() {
    let command = GetSdr { reservation: 0x0201, id: 0x0403, offset: 5, len: 6 };
    assert_eq!(command.data(), [1, 2, 3, 4, 5, 6]);
    let reply = |bytes: &[u8]| command.reply(bytes);
    assert_eq!(reply(&[9, 0, 1]).unwrap(), SdrPart { next: Some(9), bytes: vec![1] });
    assert_eq!(reply(&[0xFF, 0xFF, 1]).unwrap().next, None);
    assert_eq!(reply(&[3, 4, 1]).unwrap().next, None, "a record that is its own successor");
    assert!(reply(&[9, 0]).is_err() && reply(&[9, 0, 1, 2, 3, 4, 5, 6, 7]).is_err());
}
