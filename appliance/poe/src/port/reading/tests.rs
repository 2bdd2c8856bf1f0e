use super::*;

const PORT: PortId = PortId { group: 1, index: 3 };

fn reading(admin: Option<i32>, detection: Option<i32>) -> Reading {
    let value = |column, value: Option<i32>| {
        let value = value.map_or(Value::NoSuchInstance, Value::Integer);
        VarBind::new(port_object(column, PORT), value)
    };
    let counter = |column, count| VarBind::new(port_object(column, PORT), Value::Counter32(count));
    let values = [
        value(ADMIN, admin),
        value(DETECTION, detection),
        value(CLASS, Some(4)),
        counter(DENIALS, 1),
        counter(OVERLOADS, 2),
        counter(SHORTS, 3),
    ];
    Reading::of(PORT, &values)
}

#[test]
fn every_pair_of_values_is_one_state() {
    let fault = Fault { overloads: 2, shorts: 3, denials: 1 };
    for admin in [None, Some(0), Some(1), Some(2), Some(3)] {
        for detection in [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)] {
            let expected = match (admin, detection) {
                (Some(1), Some(3)) => PortState::Delivering { class: Some(3) },
                (Some(1), Some(2)) => PortState::Searching(fault),
                (Some(1), Some(4 | 6)) => PortState::Faulty(fault),
                (Some(2), Some(1 | 2 | 4 | 6)) => PortState::Off,
                _ => PortState::Unclear { admin, detection },
            };
            let found = reading(admin, detection);
            assert_eq!(found.state(), expected, "{admin:?} {detection:?}");
            assert_eq!(found.exists(), admin.is_some());
        }
    }
}

#[test]
fn values_of_another_port_or_another_type_are_not_read() {
    let other = PortId { group: 1, index: 30 };
    let values = [
        VarBind::new(port_object(ADMIN, other), Value::Integer(1)),
        VarBind::new(port_object(DETECTION, PORT), Value::Gauge32(3)),
    ];
    assert_eq!(Reading::of(PORT, &values), Reading::default());
}

#[test]
fn a_state_is_one_sentence() {
    let rows = [
        (Some(2), Some(1), "the port is switched off"),
        (Some(1), Some(3), "the port delivers power to a device of class 3"),
        (
            Some(1),
            Some(4),
            "the switch reports a fault of the port; since its start the switch counted \
             overloads: 2, short circuits: 3, denials: 1",
        ),
        (
            Some(1),
            None,
            "the switch reports 1 as pethPsePortAdminEnable and no value as \
             pethPsePortDetectionStatus",
        ),
    ];
    for (admin, detection, words) in rows {
        assert_eq!(reading(admin, detection).state().to_string(), words);
    }
    let searching = PortState::Searching(Fault::default()).to_string();
    assert_eq!(searching, "the port offers power, but no device draws power");
}

#[test]
fn a_name_is_any_of_the_three_texts_of_a_port() {
    let expected = ExpectedName { text: "nuc-3".to_owned(), interface: 12 };
    let objects = Reading::objects(PORT, Some(&expected));
    let named = |texts: [&'static str; 3]| {
        let texts = objects[6..].iter().zip(texts);
        let values: Vec<VarBind> = texts
            .map(|(oid, text)| VarBind::new(oid.clone(), Value::OctetString(text.into())))
            .collect();
        Reading::of(PORT, &values).other_names(&expected)
    };
    for texts in [["nuc-3", "", ""], ["a", " nuc-3 ", "b"], ["", "", "nuc-3"]] {
        assert_eq!(named(texts), None, "{texts:?}");
    }
    let others = vec!["nuc-30".to_owned(), "gi0/12".to_owned()];
    assert_eq!(named(["", "nuc-30", "gi0\n/12"]), Some(others));
    assert_eq!(named(["", "", ""]), Some(Vec::new()));
}

#[test]
fn ports_are_read_from_the_instances_of_their_column() {
    assert_eq!(Reading::port_of(&port_object(ADMIN, PORT)), Some(PORT));
    assert_eq!(Reading::port_of(&port_object(DETECTION, PORT)), None);
    assert_eq!(Reading::port_of(&Reading::ports().child(1)), None);
}
