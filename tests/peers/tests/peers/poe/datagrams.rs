//! Datagrams that are not the response of the request: a relay in front of the switch sends them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use poe::{Error, Line, Login, PortState, Switch};
use poe_sim::PoePorts;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::{community, options, right_user, start};
use peers::PoeSwitch;

/// Largest datagram of the relay, in bytes.
const DATAGRAM_MAX: usize = 65_507;

/// Starts a relay to the switch. For each response of the switch, the relay sends the datagrams
/// that `replies` returns.
async fn relay(
    peer: &PoeSwitch,
    replies: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let switch = SocketAddr::from((peer.address(), Switch::PORT));
    let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = front.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut request, mut response) = (vec![0; DATAGRAM_MAX], vec![0; DATAGRAM_MAX]);
        let mut client = address;
        loop {
            tokio::select! {
                received = front.recv_from(&mut request) => {
                    let (length, from) = received.unwrap();
                    client = from;
                    back.send_to(&request[..length], switch).await.unwrap();
                }
                received = back.recv_from(&mut response) => {
                    let (length, _) = received.unwrap();
                    for reply in replies(&response[..length]) {
                        front.send_to(&reply, client).await.unwrap();
                    }
                }
            }
        }
    });
    (address, task)
}

fn through(relay: SocketAddr, login: Login) -> Switch {
    let options = options(&relay.ip().to_string(), relay.port(), login);
    Switch::new(Arc::new(Line::default()), options).unwrap()
}

/// Datagrams that no client should take for the response.
fn noise(response: &[u8]) -> Vec<Vec<u8>> {
    let flipped = |at: usize| {
        let mut bytes = response.to_vec();
        bytes[at % response.len()] ^= 0x55;
        bytes
    };
    let longer = [response, &[0; 9]].concat();
    let mut all = vec![Vec::new(), vec![0x30], response[..response.len() / 2].to_vec(), longer];
    all.push(vec![0xff; 60_000]);
    all.extend((0..response.len()).step_by(5).map(flipped));
    all
}

#[tokio::test]
async fn damaged_and_foreign_datagrams_of_a_user_are_ignored() {
    let peer = start();
    // The authentication refuses each damaged copy, so the right response decides.
    let (address, task) = relay(&peer, |response| {
        let mut all = noise(response);
        all.push(response.to_vec());
        all
    })
    .await;
    let ours = through(address, right_user());
    assert_eq!(ours.state().await.unwrap(), PortState::Off);
    ours.switch_on().await.unwrap();
    assert_eq!(ours.state().await.unwrap(), PortState::Delivering { class: Some(3) });
    assert_eq!(peer.ports.requests(), ["1.3 on"]);
    task.abort();
}

#[tokio::test]
async fn a_response_to_an_earlier_request_is_ignored() {
    let peer = start();
    for login in [right_user(), community(PoePorts::COMMUNITY)] {
        let earlier = std::sync::Mutex::new(None::<Vec<u8>>);
        let (address, task) = relay(&peer, move |response| {
            let mut earlier = earlier.lock().unwrap();
            let mut all: Vec<Vec<u8>> = earlier.iter().cloned().collect();
            *earlier = Some(response.to_vec());
            all.push(response.to_vec());
            all
        })
        .await;
        let ours = through(address, login);
        for _ in 0..3 {
            assert_eq!(ours.state().await.unwrap(), PortState::Off);
            ours.switch_on().await.unwrap();
            assert_eq!(ours.state().await.unwrap(), PortState::Delivering { class: Some(3) });
            ours.switch_off().await.unwrap();
        }
        task.abort();
    }
}

#[tokio::test]
async fn only_damaged_datagrams_are_an_error_and_switch_nothing() {
    let peer = start();
    for login in [right_user(), community(PoePorts::COMMUNITY)] {
        let (address, task) =
            relay(&peer, |response| vec![response[..response.len() - 1].to_vec(), vec![0; 40]])
                .await;
        let error = through(address, login).switch_on().await.unwrap_err();
        assert!(error.is_silence() && error.is_transient(), "{error:?}");
        assert!(!matches!(error, Error::Login(_)), "{error:?}");
        task.abort();
    }
    assert!(peer.ports.requests().is_empty());
}
