//! The driver that the controllers use, with confirmation by the switch.

use bmc::{
    Address, Confirmation, Driver, Endpoint, Error, Power, PowerAction, Protocol, ensure, registry,
};
use poe::{Login, Switch};
use poe_sim::{Behavior, PoePorts};
use stdx::testing::PATIENCE;
use tokio::time::{Duration, Instant};

use super::{options, right_user, start};
use peers::PoeSwitch;

/// Intervals of readings after which a test expects no confirmation.
const READINGS: u32 = 6;
/// Interval between two readings of [`ensure`].
const POLL: Duration = Duration::from_millis(500);

fn driver(peer: &PoeSwitch, login: Login) -> Box<dyn Driver> {
    let host = peer.address().to_string();
    let options = options(&host, Switch::PORT, login);
    registry::open(Endpoint {
        address: Address { host, port: Switch::PORT },
        credentials: bmc::Credentials::default(),
        protocol: Protocol::Poe(Box::new(options)),
    })
}

#[tokio::test]
async fn on_and_off_are_confirmed_by_the_switch_and_act_once() {
    let peer = start();
    peer.ports.behave(Behavior { late_readings: 2, ..Behavior::default() });
    let ours = driver(&peer, right_user());
    let confirm = |want| ensure(ours.as_ref(), want, Instant::now() + PATIENCE);
    confirm(Power::Off).await.unwrap();
    assert!(peer.ports.requests().is_empty(), "the port was off already");
    assert_eq!(ours.power_reason().unwrap(), "PoE port 1.3: the port is switched off");
    confirm(Power::On).await.unwrap();
    confirm(Power::On).await.unwrap();
    let reason = "PoE port 1.3: the port delivers power to a device of class 3";
    assert_eq!(ours.power_reason().unwrap(), reason);
    confirm(Power::Off).await.unwrap();
    assert_eq!(peer.ports.requests(), ["1.3 on", "1.3 off"]);
}

#[tokio::test]
async fn a_port_without_a_device_is_never_on_and_the_error_says_why() {
    let peer = start();
    peer.ports.change(|ports| ports.iter_mut().for_each(|port| port.has_device = false));
    let ours = driver(&peer, right_user());
    let error =
        ensure(ours.as_ref(), Power::On, Instant::now() + POLL * READINGS).await.unwrap_err();
    let text = error.sentence();
    let end = "last state: unknown (PoE port 1.3: the port offers power, but no device draws \
               power)";
    assert!(text.starts_with("the power was not on within ") && text.ends_with(end), "{text}");
    ensure(ours.as_ref(), Power::Off, Instant::now() + PATIENCE).await.unwrap();
    assert_eq!(peer.ports.requests(), ["1.3 on", "1.3 off"]);
}

#[tokio::test]
async fn a_switch_that_lies_is_never_confirmed() {
    let peer = start();
    peer.ports.behave(Behavior { lies: true, ..Behavior::default() });
    let ours = driver(&peer, right_user());
    let error =
        ensure(ours.as_ref(), Power::On, Instant::now() + POLL * READINGS).await.unwrap_err();
    assert!(matches!(error, Error::NotConfirmed { last: Power::Off, .. }), "{error:?}");
}

#[tokio::test]
async fn the_driver_has_what_a_port_can_do() {
    let peer = start();
    let ours = driver(&peer, right_user());
    assert_eq!(ours.capabilities().names(), ["on", "off", "cycle"]);
    assert_eq!(ours.confirmation(), Confirmation::Switch);
    for action in [PowerAction::Soft, PowerAction::Reset] {
        let error = ours.set_power(action).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { driver: "poe", .. }), "{error:?}");
    }
    assert!(peer.ports.requests().is_empty());
}

#[tokio::test]
async fn a_cycle_that_may_have_begun_is_not_repeated() {
    let peer = start();
    peer.ports.change(|ports| ports.iter_mut().for_each(|port| port.is_on = true));
    let ours = driver(&peer, right_user());
    peer.ports.behave(Behavior { detection: Some(3), ..Behavior::default() });
    let error = ours.set_power(PowerAction::Cycle).await.unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }) && !error.is_transient(), "{error:?}");
    assert!(error.sentence().contains("ended before the port was switched on again"), "{error}");
    // Afterwards a person can switch the port on as usual.
    peer.ports.behave(Behavior::default());
    ensure(ours.as_ref(), Power::On, Instant::now() + PATIENCE).await.unwrap();
    assert!(peer.ports.is_on(PoePorts::PORT));
}

#[tokio::test]
async fn a_refused_login_is_held_by_the_queue_as_of_other_drivers() {
    let peer = start();
    let mut user = super::user(PoePorts::USER, poe::Authentication::Sha256);
    user.password = "wrong-word".into();
    let error = driver(&peer, Login::User(user)).power().await.unwrap_err();
    assert!(error.refuses_login() && !error.is_transient(), "{error:?}");
    let text = error.sentence();
    let start = format!(
        "Power over Ethernet of {}:161: the switch refused the login: wrong password or hash",
        peer.address()
    );
    assert!(text.starts_with(&start), "{text}");
}
