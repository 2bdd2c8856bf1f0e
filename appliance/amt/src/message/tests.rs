use proptest::prelude::*;

use super::{Answer, Element, Fault, Malformed, brief};
use crate::power::{HostState, PowerReading};

/// First element in the body of a recorded answer.
fn recorded(name: &str, xml: &str) -> Element {
    Answer::parse(xml.as_bytes()).unwrap().expect(name).unwrap()
}

#[test]
fn a_recorded_power_state_is_read_from_both_forms() {
    let get = include_str!("../../recordings/power-state.xml");
    let instance = recorded("CIM_AssociatedPowerManagementService", get);
    let expected =
        PowerReading { state: HostState::On, available: vec![10, 8, 5, 11, 4, 7, 14, 12] };
    assert_eq!(PowerReading::read(&instance).unwrap(), expected);
    let user = instance.child("UserOfService").unwrap();
    let selectors = user.at(&["ReferenceParameters", "SelectorSet"]).unwrap();
    let keys: Vec<_> = selectors.children.iter().map(|it| it.key.as_deref().unwrap()).collect();
    assert_eq!(keys, ["CreationClassName", "Name"]);

    let page = include_str!("../../recordings/power-state-page.xml");
    let (items, next) = Answer::parse(page.as_bytes()).unwrap().page().unwrap();
    assert_eq!((items.len(), next), (1, None));
    assert_eq!(PowerReading::read(&items[0]).unwrap(), expected);
}

#[test]
fn recorded_methods_and_enumerations_are_read() {
    let done = include_bytes!("../../recordings/power-requested.xml");
    let done = Answer::parse(done).unwrap();
    assert_eq!(done.clone().return_value("RequestPowerStateChange"), Ok(0));
    let other = done.return_value("ChangeBootOrder").unwrap_err();
    assert!(matches!(other, Malformed::Unexpected { .. }), "{other}");
    let ordered = include_bytes!("../../recordings/boot-ordered.xml");
    assert_eq!(Answer::parse(ordered).unwrap().return_value("ChangeBootOrder"), Ok(0));
    let begun = include_bytes!("../../recordings/enumeration.xml");
    let context = Answer::parse(begun).unwrap().enumeration().unwrap();
    assert_eq!(context, "14000000-0000-0000-0000-000000000000");
    let chips = include_bytes!("../../recordings/chips.xml");
    let (items, next) = Answer::parse(chips).unwrap().page().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(next.as_deref(), Some("D4020000-0000-0000-0000-000000000000"));
    let sources = include_bytes!("../../recordings/boot-sources.xml");
    let (items, _) = Answer::parse(sources).unwrap().page().unwrap();
    let ids: Vec<_> = items.iter().filter_map(|item| item.text_of("InstanceID")).collect();
    for target in [crate::BootTarget::Pxe, crate::BootTarget::Disk, crate::BootTarget::Cdrom] {
        assert!(ids.contains(&target.source().unwrap()), "{target:?} in {ids:?}");
    }
}

#[test]
fn every_class_of_the_recordings_is_named_as_requested() {
    for (name, xml) in [
        ("IPS_PowerManagementService", include_str!("../../recordings/standby.xml")),
        ("AMT_RedirectionService", include_str!("../../recordings/redirection.xml")),
        ("IPS_OptInService", include_str!("../../recordings/consent.xml")),
        ("AMT_GeneralSettings", include_str!("../../recordings/general.xml")),
    ] {
        let class = recorded(name, xml);
        assert_eq!(class.name, name);
        assert!(class.namespace.ends_with(&format!("/{name}")), "{}", class.namespace);
    }
    let redirection = include_str!("../../recordings/redirection.xml");
    let redirection = recorded("AMT_RedirectionService", redirection);
    assert_eq!(redirection.number("EnabledState"), Ok(Some(32_771)));
    let standby = include_str!("../../recordings/standby.xml");
    let standby = recorded("IPS_PowerManagementService", standby);
    assert_eq!(standby.number("OSPowerSavingState"), Ok(Some(2)));
}

fn envelope(header: &str, body: &str) -> Vec<u8> {
    format!(
        "<x:Envelope xmlns:x=\"http://www.w3.org/2003/05/soap-envelope\" \
         xmlns:y=\"http://schemas.xmlsoap.org/ws/2004/08/addressing\"><x:Header>{header}</x:Header>\
         <x:Body>{body}</x:Body></x:Envelope>"
    )
    .into_bytes()
}

#[test]
fn faults_become_sentences() {
    let fault = |code: &str, reason: &str| {
        let body = format!(
            "<x:Fault><x:Code><x:Value>x:Sender</x:Value><x:Subcode><x:Value>{code}</x:Value>\
             </x:Subcode></x:Code><x:Reason><x:Text xml:lang=\"en-US\">{reason}</x:Text></x:Reason>\
             <x:Detail></x:Detail></x:Fault>"
        );
        Answer::parse(&envelope("", &body)).unwrap().fault().unwrap()
    };
    let absent = fault("b:DestinationUnreachable", "No route can be determined.");
    assert!(absent.is_absent() && !absent.is_busy());
    assert_eq!(
        absent.to_string(),
        "this firmware does not have the class or the instance: No route can be determined. \
         (fault DestinationUnreachable)"
    );
    assert!(fault("c:Concurrency", "").is_busy());
    assert_eq!(fault("", "x").to_string(), "x (fault Sender)");
    assert_eq!(Fault::default().to_string(), "fault without a reason");
}

#[test]
fn answers_of_other_requests_are_refused() {
    let answer = |id: &str| {
        Answer::parse(&envelope(&format!("<y:RelatesTo>{id}</y:RelatesTo>"), "")).unwrap()
    };
    assert_eq!(answer("7").check_relation(7), Ok(()));
    assert_eq!(answer("8").check_relation(7), Err(Malformed::Unrelated("8".into())));
    assert_eq!(Answer::parse(&envelope("", "")).unwrap().check_relation(7), Ok(()));
}

#[test]
fn hostile_documents_are_refused_in_words() {
    let deep = format!("{}{}", "<a>".repeat(5000), "</a>".repeat(5000));
    assert_eq!(Answer::parse(&envelope("", &deep)), Err(Malformed::Depth));
    let wide = "<a/>".repeat(60_000);
    let wide = Answer::parse(&envelope("", &wide)).unwrap_err();
    assert!(matches!(wide, Malformed::Xml(_)), "{wide}");
    let bomb = b"<!DOCTYPE a [<!ENTITY b \"bb\">]><a>&b;</a>";
    assert!(matches!(Answer::parse(bomb), Err(Malformed::Xml(_))));
    assert_eq!(Answer::parse(b"<html><body>x</body></html>"), Err(Malformed::Envelope));
    assert_eq!(Answer::parse(&[0xFF, 0xFE]), Err(Malformed::Encoding));
    let empty = Answer::parse(&envelope("", "")).unwrap();
    assert!(empty.clone().return_value("M").is_err() && empty.page().is_err());
    let silent = Answer::parse(&envelope("", "<M_OUTPUT/>")).unwrap();
    assert_eq!(silent.return_value("M"), Err(Malformed::Missing("ReturnValue")));
    let garbled = "<M_OUTPUT><ReturnValue>zero</ReturnValue></M_OUTPUT>";
    let garbled = Answer::parse(&envelope("", garbled)).unwrap().return_value("M").unwrap_err();
    assert_eq!(garbled.to_string(), "expected a number in element ReturnValue, found \"zero\"");
    assert_eq!(brief(&"ab \n\t cd\u{7}".repeat(200)).chars().count(), 300);
}

proptest! {
    #[test]
    fn any_body_is_read_without_panic(body in "(<[a-zMx:_]{1,9}>|</[a-zMx:_]{1,9}>|[ -~]){0,40}") {
        if let Ok(answer) = Answer::parse(&envelope("", &body)) {
            let _ = answer.fault().map(|fault| fault.to_string());
            let _ = (answer.clone().page(), answer.clone().enumeration(), answer.return_value("M"));
        }
    }
}
