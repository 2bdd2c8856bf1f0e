//! An Intel AMT engine that sends any challenge, and any answer to each request.

#![no_main]

use amt::Login;
use amt::boot::https::availability;
use amt::boot::{BootTarget, next, settings};
use amt::envelope::{Class, Request};
use amt::event_log::{PAGE_RECORDS, Page};
use amt::identity::{Consent, Identity, IdentityParts, Inventory};
use amt::message::{Answer, Element};
use amt::power::{PowerReading, PowerRequest, plan};
use amt::redirection::Session;
use fuzz::Input;
use http_digest::Challenge;
use libfuzzer_sys::fuzz_target;

const TARGETS: [BootTarget; 6] = [
    BootTarget::Https,
    BootTarget::Pxe,
    BootTarget::Disk,
    BootTarget::SafeMode,
    BootTarget::Cdrom,
    BootTarget::Setup,
];

/// Maximum bytes of the mark for lost output.
const MARKED: usize = 64;

fn challenge(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(challenge) = Challenge::find(text.lines()) else { return };
    let login = ("admin", &"P@ssw0rd1".into());
    let answer = challenge.authorization(login, ("POST", "/wsman"), "0a4f113b", 1);
    assert!(!answer.contains("P@ssw0rd1"), "the password was sent");
    assert!(!answer.contains('\n'), "a header was split");
}

/// Uses an element as the instance of every class.
fn instance(element: &Element) {
    if let Ok(reading) = PowerReading::read(element) {
        for request in [PowerRequest::On, PowerRequest::Off, PowerRequest::Soft] {
            let _ = plan(request, &reading).map_err(|error| error.to_string());
        }
    }
    for target in TARGETS {
        let fields = settings(target, element, true);
        let _ = target.check(element);
        let request = Request::put(Class("AMT_BootSettingData"), &[], &fields).envelope(1);
        let written = Answer::parse(request.as_bytes()).expect("a valid request");
        written.expect("AMT_BootSettingData").expect("the same class");
    }
    let _ = availability(Some(element), Some(element));
    let _ = (next(None, element), Consent::read(element));
    let some = Some(element.clone());
    let parts = IdentityParts {
        package: some.clone(),
        chassis: some.clone(),
        software: vec![element.clone()],
        bios: some.clone(),
        setup: some.clone(),
        general: some.clone(),
        port: some.clone(),
        consent: some,
    };
    let _ = Identity::read(&parts);
}

fn answer(bytes: &[u8]) {
    let Ok(answer) = Answer::parse(bytes) else { return };
    if let Some(fault) = answer.fault() {
        assert!(!fault.to_string().contains('\n'), "a fault is one line");
        let _ = (fault.is_absent(), fault.is_busy());
    }
    let _ = answer.check_relation(7);
    let _ = answer.clone().return_value("RequestPowerStateChange");
    let _ = answer.clone().enumeration();
    if let Ok((output, _)) = answer.clone().output("GetRecords")
        && let Ok(page) = Page::read(&output)
    {
        assert!(page.records.len() <= PAGE_RECORDS, "more records than a log");
        page.records.iter().for_each(|record| drop(record.detail()));
    }
    if let Ok((items, _)) = answer.clone().page() {
        items.iter().for_each(instance);
        let _ = Inventory::read(&items, &items, &items);
    }
    for class in ["CIM_AssociatedPowerManagementService", "AMT_BootSettingData", "CIM_Chassis"] {
        if let Ok(element) = answer.clone().expect(class) {
            instance(&element);
        }
    }
}

/// Messages of redirection, cut anywhere.
fn redirection(mut input: Input) {
    let login = Login { username: "admin".into(), password: "P@ssw0rd1".into() };
    let mut session = Session::new(login, "0a4f113b".into(), false);
    let size = usize::from(input.byte()).max(1);
    for piece in input.0.chunks(size) {
        let Ok(reaction) = session.receive(piece) else { return };
        let password = b"P@ssw0rd1";
        let is_sent = reaction.reply.windows(password.len()).any(|part| part == password);
        assert!(!is_sent, "the password was sent");
        let most = MARKED * (input.0.len() + 1);
        assert!(reaction.characters.len() <= most, "more output than input");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() {
        b'c' => challenge(input.0),
        b'r' => redirection(input),
        _ => answer(input.0),
    }
});
