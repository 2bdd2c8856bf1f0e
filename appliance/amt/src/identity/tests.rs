use super::{Consent, Identity, IdentityParts, Inventory, MemoryModule, Provisioning, system_uuid};
use crate::message::{Answer, Element};

fn one(name: &str, xml: &str) -> Option<Element> {
    Some(Answer::parse(xml.as_bytes()).unwrap().expect(name).unwrap())
}

fn page(xml: &str) -> Vec<Element> {
    Answer::parse(xml.as_bytes()).unwrap().page().unwrap().0
}

#[test]
fn a_recorded_machine_has_its_identity() {
    let parts = IdentityParts {
        package: one("CIM_ComputerSystemPackage", include_str!("../../recordings/package.xml")),
        chassis: one("CIM_Chassis", include_str!("../../recordings/chassis.xml")),
        software: page(include_str!("../../recordings/software.xml")),
        bios: one("CIM_BIOSElement", include_str!("../../recordings/bios.xml")),
        setup: one("AMT_SetupAndConfigurationService", include_str!("../../recordings/setup.xml")),
        general: one("AMT_GeneralSettings", include_str!("../../recordings/general.xml")),
        port: one("AMT_EthernetPortSettings", include_str!("../../recordings/port.xml")),
        consent: one("IPS_OptInService", include_str!("../../recordings/consent.xml")),
    };
    let some = |text: &str| Some(text.to_owned());
    let expected = Identity {
        uuid: some("33221100-5544-7766-8899-aabbccddeeff"),
        manufacturer: some("Intel(R) Client Systems"),
        model: some("NUC9V7QNX"),
        serial: some("SERIAL000001"),
        amt_version: some("12.0.67"),
        bios_version: some("QNCFLX70.0054.2020.0810.2227"),
        provisioning: Some(Provisioning { state: 2, mode: Some(1) }),
        host_name: some("Test Host Name"),
        realm: some("Digest:4BB90000000000000000000000000000"),
        mac: some("02:00:00:00:00:01"),
        answers_when_off: Some(true),
        consent: Some(Consent { required: 0, state: 0 }),
    };
    assert_eq!(Identity::read(&parts), expected);
    assert_eq!(Identity::read(&IdentityParts::default()), Identity::default());
    let provisioning = expected.provisioning.unwrap().to_string();
    assert_eq!(provisioning, "activated, admin control mode");
}

#[test]
fn a_machine_without_link_in_soft_off_says_so() {
    let mut port =
        one("AMT_EthernetPortSettings", include_str!("../../recordings/port.xml")).unwrap();
    port.children.retain(|child| child.name != "LinkPolicy" || child.text != "14");
    let parts = IdentityParts { port: Some(port), ..IdentityParts::default() };
    assert_eq!(Identity::read(&parts).answers_when_off, Some(false));
}

#[test]
fn consent_is_missing_until_a_user_gave_it() {
    assert!(Consent { required: u32::MAX, state: 0 }.is_missing());
    assert!(!Consent { required: u32::MAX, state: 3 }.is_missing());
    assert!(!Consent { required: 1, state: 0 }.is_missing());
}

#[test]
fn placeholders_are_not_uuids() {
    let guid = "00112233-4455-6677-8899-AABBCCDDEEFF";
    assert_eq!(system_uuid(guid).unwrap(), "33221100-5544-7766-8899-aabbccddeeff");
    for wrong in ["", "0011", &"0".repeat(32), &"F".repeat(32), &"x".repeat(32)] {
        assert_eq!(system_uuid(wrong), None, "{wrong}");
    }
}

#[test]
fn a_recorded_machine_has_its_hardware() {
    let inventory = Inventory::read(
        &page(include_str!("../../recordings/chips.xml")),
        &page(include_str!("../../recordings/memory.xml")),
        &page(include_str!("../../recordings/disks.xml")),
    );
    let module = |bank: &str, serial: &str| MemoryModule {
        bank: Some(bank.to_owned()),
        bytes: 16 << 30,
        part: Some("CT16G4SFD824A.M16FE".to_owned()),
        serial: Some(serial.to_owned()),
    };
    let expected = Inventory {
        processors: vec!["Intel(R) Core(TM) i7-9850H CPU @ 2.60GHz".to_owned()],
        memory: vec![module("BANK 0", "00000001"), module("BANK 2", "00000002")],
        disks: vec![960_197_124_000, 500_107_862_000],
    };
    assert_eq!(inventory, expected);
}
