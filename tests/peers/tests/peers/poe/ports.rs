//! Ports: numbers, names and states.

use std::sync::Arc;

use poe::{Error, Fault, Line, Login, PortId, PortState, Switch};
use poe_sim::{Behavior, PoePorts, Port};
use stdx::Hint as _;

use super::{community, named, options, right_user, start, switch};
use peers::PoeSwitch;

fn change(peer: &PoeSwitch, change: impl Fn(&mut Port)) {
    peer.ports.change(|ports| {
        ports.iter_mut().filter(|port| port.id == PoePorts::PORT).for_each(change);
    });
}

fn at(peer: &PoeSwitch, login: Login, group: u32, index: u32) -> Switch {
    let mut options = options(&peer.address().to_string(), Switch::PORT, login);
    options.port = PortId { group, index };
    Switch::new(Arc::new(Line::default()), options).unwrap()
}

#[tokio::test]
async fn a_port_that_the_switch_does_not_have_is_an_error_with_its_ports() {
    let peer = start();
    for (group, index) in [(1, 30), (2, 3)] {
        for ours in [
            at(&peer, right_user(), group, index),
            at(&peer, community(PoePorts::COMMUNITY), group, index),
        ] {
            let error = ours.switch_on().await.unwrap_err();
            let expected =
                format!("the switch has no PoE port {group}.{index}; its PoE ports are 1.1 to 1.4");
            assert_eq!(error.to_string(), expected);
            assert!(error.hint().unwrap().contains("outlet"));
            assert!(!error.is_transient());
        }
    }
    let error = switch(&peer, community(PoePorts::BLIND_COMMUNITY)).state().await.unwrap_err();
    assert!(matches!(error, Error::NoPorts), "{error:?}");
    assert!(error.hint().unwrap().contains("1.3.6.1.2.1.105"), "{error}");
    assert!(peer.ports.requests().is_empty());
}

#[test]
fn snmpwalk_finds_the_port_as_the_page_says() {
    let peer = start();
    let walk = |peer: &PoeSwitch| {
        let found = peer.net_snmp("snmpwalk", &["1.3.6.1.2.1.105.1.1.1.6"]).unwrap();
        found.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    peer.ports.change(|ports| ports.iter_mut().for_each(|port| port.is_on = true));
    assert_eq!(walk(&peer), ["3", "3", "3", "3"]);
    change(&peer, |port| port.has_device = false);
    assert_eq!(walk(&peer), ["3", "3", "2", "3"]);
}

#[tokio::test]
async fn a_port_with_another_name_is_not_switched() {
    let peer = start();
    change(&peer, |port| port.interface = Some(("gi0/3".to_owned(), "nuc-3".to_owned())));
    for name in ["nuc-3", "gi0/3"] {
        let ours = named(&peer, name, 3);
        ours.switch_on().await.unwrap();
        ours.switch_off().await.unwrap();
    }
    change(&peer, |port| port.kind = "camera".to_owned());
    named(&peer, "camera", 99).switch_on().await.unwrap();
    let before = peer.ports.requests().len();

    let error = named(&peer, "nuc-4", 3).switch_off().await.unwrap_err();
    let expected = "the name of PoE port 1.3 is not \"nuc-4\", so the port was not switched; names \
                    that the switch reports: camera, nuc-3, gi0/3";
    assert_eq!(error.to_string(), expected);
    assert!(named(&peer, "nuc-4", 3).cycle().await.is_err());
    change(&peer, |port| *port = Port::with_device(1, 3));
    let error = named(&peer, "nuc-3", 99).switch_off().await.unwrap_err().to_string();
    assert!(error.ends_with("names that the switch reports: none"), "{error}");
    assert_eq!(peer.ports.requests().len(), before);
}

#[tokio::test]
async fn a_port_without_a_device_offers_power_and_can_be_switched_off() {
    let peer = start();
    change(&peer, |port| port.has_device = false);
    let ours = switch(&peer, right_user());
    ours.switch_on().await.unwrap();
    assert_eq!(ours.state().await.unwrap(), PortState::Searching(Fault::default()));
    ours.switch_off().await.unwrap();
    assert_eq!(ours.state().await.unwrap(), PortState::Off);
    assert_eq!(peer.ports.requests(), ["1.3 on", "1.3 off"]);
}

#[tokio::test]
async fn a_port_with_a_fault_is_switched_off_and_on() {
    let peer = start();
    change(&peer, |port| (port.is_on, port.has_fault) = (true, true));
    let ours = switch(&peer, right_user());
    let fault = Fault { overloads: 1, ..Fault::default() };
    assert_eq!(ours.state().await.unwrap(), PortState::Faulty(fault));
    ours.switch_on().await.unwrap();
    assert_eq!(ours.state().await.unwrap(), PortState::Delivering { class: Some(3) });
    assert_eq!(peer.ports.requests(), ["1.3 off", "1.3 on"]);
}

#[tokio::test]
async fn a_cycle_waits_until_the_switch_delivers_no_power() {
    let peer = start();
    change(&peer, |port| port.is_on = true);
    peer.ports.behave(Behavior { late_readings: 3, ..Behavior::default() });
    let ours = switch(&peer, right_user());
    let started = std::time::Instant::now();
    ours.cycle().await.unwrap();
    assert_eq!(peer.ports.requests(), ["1.3 off", "1.3 on"]);
    // Three late readings, and ten seconds without power.
    assert!(started.elapsed().as_secs_f32() >= 11.0, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_port_that_does_not_go_off_is_not_switched_on_again() {
    let peer = start();
    change(&peer, |port| port.is_on = true);
    peer.ports.behave(Behavior { detection: Some(3), ..Behavior::default() });
    let error = switch(&peer, right_user()).cycle().await.unwrap_err();
    let Error::BrokenCycle { source, .. } = error else { panic!("{error:?}") };
    let text = source.to_string();
    assert!(matches!(*source, Error::StillOn { .. }), "{source:?}");
    let end = "the switch reports 2 as pethPsePortAdminEnable and 3 as pethPsePortDetectionStatus";
    assert!(text.starts_with("PoE port 1.3 was not off ") && text.ends_with(end), "{text}");
    assert_eq!(peer.ports.requests(), ["1.3 off"]);
}

#[tokio::test]
async fn a_port_whose_state_is_not_clear_is_not_switched_off() {
    let peer = start();
    change(&peer, |port| port.is_on = true);
    peer.ports.behave(Behavior { detection: Some(5), ..Behavior::default() });
    let ours = switch(&peer, right_user());
    let error = ours.switch_off().await.unwrap_err();
    assert!(matches!(error, Error::Unclear { .. }), "{error:?}");
    assert!(ours.cycle().await.is_err());
    assert!(peer.ports.requests().is_empty());
}
