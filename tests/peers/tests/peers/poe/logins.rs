//! Logins: users of version 3, and community strings of version 2c.

use peers::PoeSwitch;
use poe::{Authentication, Error, Login, LoginRefusal, PortState, Refusal, Silence};
use poe_sim::PoePorts;
use stdx::Hint as _;

use super::{ADMIN, DETECTION, community, right_user, start, switch, user};

const ON: PortState = PortState::Delivering { class: Some(3) };

#[tokio::test]
async fn a_port_is_what_net_snmp_sees_with_each_login() {
    let peer = start();
    let logins = [
        right_user(),
        Login::User(user(PoePorts::SHA1_USER, Authentication::Sha1)),
        community(PoePorts::COMMUNITY),
    ];
    for login in logins {
        let name = format!("{login:?}");
        let ours = switch(&peer, login);
        assert_eq!(ours.state().await.unwrap(), PortState::Off, "{name}");
        ours.switch_on().await.unwrap();
        assert_eq!(peer.net_snmp("snmpget", &[ADMIN, DETECTION]).unwrap(), "1\n3", "{name}");
        assert_eq!(ours.state().await.unwrap(), ON, "{name}");

        peer.net_snmp("snmpset", &[ADMIN, "i", "2"]).unwrap();
        assert_eq!(ours.state().await.unwrap(), PortState::Off, "{name}");
        peer.net_snmp("snmpset", &[ADMIN, "i", "1"]).unwrap();
        assert_eq!(ours.state().await.unwrap(), ON, "{name}");

        ours.switch_off().await.unwrap();
        assert_eq!(peer.net_snmp("snmpget", &[ADMIN, DETECTION]).unwrap(), "2\n1", "{name}");
    }
}

#[tokio::test]
async fn a_request_for_the_state_that_a_port_has_sets_nothing() {
    let peer = start();
    let ours = switch(&peer, right_user());
    ours.switch_off().await.unwrap();
    ours.switch_on().await.unwrap();
    ours.switch_on().await.unwrap();
    assert_eq!(peer.ports.requests(), ["1.3 on"]);
}

async fn refusal(peer: &PoeSwitch, login: Login) -> Error {
    let ours = switch(peer, login);
    let error = ours.switch_on().await.unwrap_err();
    assert!(!peer.ports.is_on(PoePorts::PORT));
    let text = stdx::chain(&error);
    assert!(!text.contains("wrong-word"), "{text}");
    error
}

#[tokio::test]
async fn a_wrong_user_password_hash_or_level_is_named() {
    let peer = start();
    let right = user(PoePorts::USER, Authentication::Sha256);
    let rows = [
        (user("unknown", Authentication::Sha256), LoginRefusal::User),
        (poe::User { password: "wrong-word".into(), ..right }, LoginRefusal::Password),
        (user(PoePorts::USER, Authentication::Sha1), LoginRefusal::Password),
        (user(PoePorts::AUTHENTICATED, Authentication::Sha256), LoginRefusal::Level),
    ];
    for (user, expected) in rows {
        let error = refusal(&peer, Login::User(user)).await;
        assert!(
            matches!(error, Error::Login(found) if found == expected),
            "{expected:?} {error:?}"
        );
        assert!(error.refuses_login() && !error.is_transient() && !error.is_silence(), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    assert!(peer.ports.requests().is_empty());
}

#[tokio::test]
async fn a_wrong_privacy_password_is_silence_of_net_snmp_and_the_hint_says_so() {
    let peer = start();
    let right = user(PoePorts::USER, Authentication::Sha256);
    let wrong = poe::User { privacy_password: "wrong-word".into(), ..right };
    let error = refusal(&peer, Login::User(wrong)).await;
    assert!(matches!(error, Error::NoAnswer { silence: Silence::Encrypted, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("privacyPassword"), "{error}");
}

#[tokio::test]
async fn a_wrong_community_is_silence_and_the_hint_says_so() {
    let peer = start();
    let error = refusal(&peer, community("wrong-word")).await;
    assert!(matches!(error, Error::NoAnswer { silence: Silence::Community, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("community string is right"), "{error}");
    assert!(!error.refuses_login() && error.is_transient());
}

#[tokio::test]
async fn a_login_that_may_only_read_sees_the_port_and_the_error_says_what_to_grant() {
    let peer = start();
    let readers = [
        Login::User(user(PoePorts::READER, Authentication::Sha256)),
        community(PoePorts::READ_COMMUNITY),
    ];
    for login in readers {
        let ours = switch(&peer, login.clone());
        assert_eq!(ours.state().await.unwrap(), PortState::Off);
        let error = refusal(&peer, login).await;
        let is_access =
            |it: &Error| matches!(it, Error::Refused { refusal: Refusal::Access(_), .. });
        assert!(is_access(&error), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("the switch refused to switch port 1.3 on: "), "{text}");
        assert!(error.hint().unwrap().contains("write access to pethPsePortAdminEnable"));
        assert!(!error.is_transient() && !error.refuses_login());
    }
    assert!(peer.ports.requests().is_empty());
}
