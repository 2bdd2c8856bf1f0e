//! Tests of the comparison of unknown machines with known machines.

use serde_json::{Value, json};

use super::{Traits, Verdict, who};
use crate::meta::ObjectKey;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

/// Returns the identifiers of a machine; `unit` distinguishes machines of the same model.
fn machine(unit: &str, mac: &str) -> Traits {
    let attributes = json!({
        "product": { "serialNumber": format!("G6TN{unit}") },
        "baseboard": { "serialNumber": "Default string" },
        "chassis": { "serial": "To Be Filled By O.E.M." },
        "blockDevices": [{ "serialNumber": format!("S4EV{unit}") }],
        "networkInterfaces": [{ "mac": mac }, { "mac": "00:00:00:00:00:00" }],
    });
    let uuid = format!("77777777-0000-4000-8000-00000000{unit}");
    Traits::of(&attributes, &json!({ "uuid": uuid }))
}

fn refs(all: &[(ObjectKey, Traits)]) -> impl Iterator<Item = (&ObjectKey, &Traits)> {
    all.iter().map(|(key, traits)| (key, traits))
}

#[test]
fn a_machine_with_a_new_card_is_still_that_machine() {
    let all = [
        (key("nuc1"), machine("0001", "52:54:00:77:00:01")),
        (key("nuc2"), machine("0002", "52:54:00:77:00:02")),
    ];
    let known = || refs(&all);
    let unknown = machine("0001", "52:54:00:77:00:99");
    let Verdict::One(found, same) = who(&unknown, known()) else { panic!("nobody") };
    assert_eq!(found, key("nuc1"));
    let uuid = "UUID 77777777-0000-4000-8000-000000000001";
    assert_eq!(same, [uuid, "serial number g6tn0001", "disk s4ev0001"]);
    assert_eq!(who(&machine("0003", "52:54:00:77:00:03"), known()), Verdict::Nobody);
}

#[test]
fn each_trait_counts_as_much_as_it_should() {
    let of = |attributes: Value, inventory: Value| Traits::of(&attributes, &inventory);
    let uuid = || of(Value::Null, json!({ "uuid": "4C4C4544-0042-3510-8051-B2C04F4E3032" }));
    let disks = |serials: &[&str]| {
        let disks: Vec<Value> = serials.iter().map(|it| json!({ "serial": it })).collect();
        of(Value::Null, json!({ "disks": disks }))
    };
    let board = || of(json!({ "baseboard": { "serialNumber": "BTWW1234" } }), Value::Null);
    let chassis = || of(json!({ "chassis": { "serial": "CH-77" } }), Value::Null);
    let mac = || {
        let interfaces = json!([{ "mac": "52:54:00:77:00:01" }]);
        of(json!({ "networkInterfaces": interfaces }), Value::Null)
    };
    let tpm = || of(Value::Null, json!({ "tpm": { "endorsement": "9f86d081884c7d65" } }));
    for (traits, is_enough) in [
        (tpm(), true),
        (uuid(), true),
        (mac(), true),
        (board(), false),
        (chassis(), false),
        (disks(&["S4EV1"]), false),
        (disks(&["S4EV1", "S4EV2"]), true),
        (Traits::default(), false),
    ] {
        let verdict = who(&traits, [(&key("nuc1"), &traits)]);
        assert_eq!(matches!(verdict, Verdict::One(..)), is_enough, "{traits:?}");
    }
    let both = Traits { chassis: chassis().chassis, ..board() };
    assert!(matches!(who(&both, [(&key("nuc1"), &both)]), Verdict::One(..)));
}

#[test]
fn what_every_machine_of_a_kind_says_is_nothing() {
    for text in ["Default string", " ", "0000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "X1"]
    {
        let attributes = json!({
            "product": { "serialNumber": text },
            "baseboard": { "serialNumber": text },
            "chassis": { "serial": text },
        });
        let traits = Traits::of(&attributes, &json!({ "uuid": text }));
        assert_eq!(traits, Traits::default(), "{text:?}");
    }
    let sample = json!({ "uuid": "03000200-0400-0500-0006-000700080009" });
    assert_eq!(Traits::of(&Value::Null, &sample), Traits::default());
}

#[test]
fn two_that_fit_are_both_named() {
    let unknown = machine("0001", "52:54:00:77:00:99");
    // The disk is in another machine now.
    let mut other = machine("0002", "52:54:00:77:00:02");
    other.disks = unknown.disks.clone();
    let known = [(key("nuc1"), machine("0001", "52:54:00:77:00:01")), (key("nuc2"), other)];
    assert!(matches!(who(&unknown, refs(&known)), Verdict::One(found, _) if found == key("nuc1")));
    let twins = ["b", "a"].map(|name| (key(name), machine("0001", "52:54:00:77:00:01")));
    assert_eq!(who(&unknown, refs(&twins)), Verdict::Several(vec![key("a"), key("b")]));
}
