use super::*;

fn linear(factors: [u8; 6]) -> Conversion {
    let (format, linearization) = (Format::Unsigned, Linearization::of(0));
    Conversion { format, linearization, factors: Factors::parse(factors) }
}

#[test]
fn factors_are_signed() {
    let factors = Factors { m: -1, b: -512, b_exponent: -8, result_exponent: 7 };
    assert_eq!(Factors::parse([0xFF, 0xC0, 0x00, 0x80, 0x00, 0x78]), factors);
    let factors = Factors { m: 511, b: 255, b_exponent: 7, result_exponent: -8 };
    assert_eq!(Factors::parse([0xFF, 0x40, 0xFF, 0x00, 0x00, 0x87]), factors);
}

#[test]
fn values_follow_the_formula() {
    // 12 V rail: M 63, result exponent -3.
    let rail = linear([63, 0, 0, 0, 0, 0xD0]);
    assert!((rail.value(192).unwrap() - 12.096).abs() < 1e-9);
    // Fan: M 100. Offset: B -128 with exponent 0.
    assert_eq!(linear([100, 0, 0, 0, 0, 0]).value(45), Some(4500.0));
    assert_eq!(linear([1, 0, 0x80, 0xC0, 0, 0]).value(150), Some(22.0));
    assert_eq!(linear([1, 0, 5, 0, 0, 0x02]).value(1), Some(501.0));
}

#[test]
fn readings_in_every_format() {
    let mut conversion = linear([1, 0, 0, 0, 0, 0]);
    let rows = [(0x00, 0.0), (0x40, -5.0), (0x80, -6.0)];
    for (units, value) in rows {
        let Some(format) = Format::of(units) else { panic!("an analog format") };
        conversion.format = format;
        assert_eq!(conversion.value(0xFA).unwrap(), if units == 0 { 250.0 } else { value });
    }
    assert_eq!(Format::of(0xC0), None);
}

#[test]
fn functions_follow_their_table() {
    let value = |function: u8, raw: u8| {
        let conversion =
            Conversion { linearization: Linearization::of(function), ..linear([1, 0, 0, 0, 0, 0]) };
        conversion.value(raw)
    };
    let rows = [(0, 8, 8.0), (2, 100, 2.0), (3, 8, 3.0), (5, 2, 100.0), (6, 3, 8.0)];
    let more = [(7, 4, 0.25), (8, 3, 9.0), (9, 2, 8.0), (10, 9, 3.0), (11, 27, 3.0)];
    for (function, raw, wanted) in rows.into_iter().chain(more) {
        let found = value(function, raw).unwrap();
        assert!((found - wanted).abs() < 1e-9, "function {function}: {found}");
    }
    assert!((value(1, 1).unwrap(), value(4, 0).unwrap()) == (0.0, 1.0));
    assert_eq!((value(1, 0), value(7, 0)), (None, None), "no value there");
    assert_eq!(Linearization::of(0x70), Linearization::PerReading);
}

#[test]
fn states_follow_the_worst_threshold() {
    let state =
        |bytes: &[u8]| GetSensorReading { number: 1 }.reply(bytes).unwrap().threshold_state();
    assert_eq!(state(&[40, 0xC0, 0xC0]), SensorState::Ok);
    assert_eq!(state(&[40, 0xC0]), SensorState::Ok, "without a comparison");
    assert_eq!(state(&[40, 0xC0, 0x08]), SensorState::Warning);
    assert_eq!(state(&[40, 0xC0, 0x01]), SensorState::Warning);
    for critical in [0x02, 0x04, 0x10, 0x20, 0x18, 0x03] {
        assert_eq!(state(&[40, 0xC0, critical]), SensorState::Critical, "{critical:#x}");
    }
    assert_eq!(state(&[40, 0xE0, 0x18]), SensorState::Unknown, "no reading now");
    assert_eq!(state(&[40, 0x80, 0x18]), SensorState::Unknown, "scanning is off");
}
