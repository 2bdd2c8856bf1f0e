//! Faults of a switch: no response, a restart, another engine, refusals.

use poe::{Error, PortState, Refusal, Silence};
use poe_sim::{Behavior, PoePorts};
use stdx::Hint as _;

use super::{right_user, start, switch};

#[tokio::test]
async fn a_restart_of_the_switch_loses_no_request() {
    let mut peer = start();
    let ours = switch(&peer, right_user());
    assert_eq!(ours.state().await.unwrap(), PortState::Off);
    // The engine counts its starts, so the known time of the engine is not valid any more.
    peer.restart().unwrap();
    ours.switch_on().await.unwrap();
    peer.restart().unwrap();
    assert_eq!(ours.state().await.unwrap(), PortState::Delivering { class: Some(3) });
    assert_eq!(peer.ports.requests(), ["1.3 on"]);
}

#[tokio::test]
async fn a_switch_that_was_replaced_is_discovered_again() {
    let mut peer = start();
    let ours = switch(&peer, right_user());
    ours.switch_on().await.unwrap();
    peer.replace().unwrap();
    ours.switch_off().await.unwrap();
    assert_eq!(peer.ports.requests(), ["1.3 on", "1.3 off"]);
}

#[tokio::test]
async fn a_switch_without_power_does_not_respond_and_is_found_afterwards() {
    let mut peer = start();
    let ours = switch(&peer, right_user());
    ours.state().await.unwrap();
    peer.stop();
    let error = ours.switch_on().await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { silence: Silence::Discovery, .. }), "{error:?}");
    assert!(error.is_silence() && error.is_transient());
    assert!(error.hint().unwrap().contains("SNMP version 3"), "{error}");
    peer.restart().unwrap();
    ours.switch_on().await.unwrap();
    assert!(peer.ports.is_on(PoePorts::PORT));
}

#[tokio::test]
async fn a_refused_value_carries_the_status_of_the_switch() {
    let peer = start();
    let ours = switch(&peer, right_user());
    for (answer, words, is_access) in [
        ("not-writable", "notWritable, the login has no access", true),
        ("inconsistent-value", "inconsistentValue", false),
    ] {
        peer.ports.behave(Behavior { refusal: Some(answer), ..Behavior::default() });
        let error = ours.switch_on().await.unwrap_err();
        assert_eq!(error.to_string(), format!("the switch refused to switch port 1.3 on: {words}"));
        let Error::Refused { refusal, .. } = &error else { panic!("{error:?}") };
        assert_eq!(matches!(refusal, Refusal::Access(_)), is_access, "{error}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_switch_that_accepts_and_does_nothing_is_seen_by_the_next_reading() {
    let peer = start();
    peer.ports.behave(Behavior { lies: true, ..Behavior::default() });
    let ours = switch(&peer, right_user());
    ours.switch_on().await.unwrap();
    assert_eq!(ours.state().await.unwrap(), PortState::Off);
}
