//! Tests of the certificate's names while addresses come and go, on a virtual clock.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Mutex;

use platform::net::Link;
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls_pki_types::ServerName;
use stdx::{MacAddr, TestClock};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;

/// Simulated addresses of the box, each with its period in milliseconds.
const ADDRESSES: [(&str, u64); 4] =
    [("10.77.0.1", 1_900), ("169.254.7.9", 2_300), ("192.168.1.5", 3_100), ("fd00::7", 4_700)];
/// Simulated readers of the interfaces: the task that follows the addresses, and four that show
/// them (monitor, page, panel, API). Times are interval and duration of a reading in milliseconds.
const READERS: [(u64, u64); 5] = [(3_000, 40), (700, 10), (900, 700), (1_700, 400), (2_900, 60)];
/// Time within which no address is removed and added again, in addition to the longest reading.
const FRESH: Duration = Duration::from_millis(1_000);
/// Simulated time of the test.
const WATCHED: Duration = Duration::from_secs(30);

/// Creates an interface with these addresses.
fn interface(addresses: impl IntoIterator<Item = IpAddr>) -> InterfaceState {
    let link = Link { name: "eth0".into(), index: 2, mac: MacAddr([2, 0, 0, 0, 0, 1]) };
    let addresses = addresses.into_iter().map(|it| (it, 16)).collect();
    InterfaceState { link, mbps: None, addresses, port_of: None }
}

/// Returns the addresses of the box at time `after`. Each is present in every second period.
fn present(after: Duration) -> Vec<IpAddr> {
    let millis = u64::try_from(after.as_millis()).unwrap();
    let is_there = |(_, period): &&(&str, u64)| millis / period % 2 == 1;
    ADDRESSES.iter().filter(is_there).map(|(text, _)| text.parse().unwrap()).collect()
}

/// Returns true if a client that connects to `address` accepts the certificate.
fn is_named(pki: &Pki, address: IpAddr) -> bool {
    let certificate = pki.server_certificate().unwrap();
    let parsed = ParsedCertificate::try_from(&certificate).unwrap();
    verify_server_name(&parsed, &ServerName::from(address)).is_ok()
}

/// Checks that the certificate names the addresses of this reading, and of other recent readings.
fn check(
    pki: &Pki,
    shown: &Mutex<HashMap<IpAddr, Duration>>,
    seen: &InterfaceState,
    now: Duration,
) {
    let mut shown = shown.lock().unwrap();
    for (address, _) in &seen.addresses {
        assert!(is_named(pki, *address), "{address} is not named after {now:?}");
        shown.insert(*address, now);
    }
    for address in present(now) {
        let is_fresh = shown.get(&address).is_some_and(|at| now - *at < FRESH);
        let is_right = !is_fresh || is_named(pki, address);
        assert!(is_right, "{address} is not named any more after {now:?}");
    }
}

#[test]
fn every_name_is_said_once() {
    let seen = interface(["169.254.7.9", "10.77.0.1"].map(|it| it.parse().unwrap()));
    let listed = names(vec!["cellar".into(), "10.77.0.1".into()], "cellar", &[seen]);
    let for_clusterctl = ["gitlab.cellar", "gitlab.cellar.local"];
    let own = ["cellar", "10.77.0.1", "cellar.local"];
    assert_eq!(listed, [&own[..], &for_clusterctl[..], &["169.254.7.9"]].concat());
}

#[tokio::test(start_paused = true)]
async fn no_address_is_shown_before_the_certificate_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TestClock::at(jiff::Timestamp::from_second(1_800_000_000).unwrap());
    let pki = Pki::ensure(folder.path(), &["tinbox".to_owned()], clock.now()).unwrap();
    let (pki, config) = (Arc::new(pki), Arc::new(Config::default()));
    let names = Names::new(Arc::clone(&pki), "cellar".into(), config, Arc::new(clock));
    let (names, start) = (Arc::new(names), Instant::now());
    let mut looks = JoinSet::new();
    let shown = Arc::new(Mutex::new(HashMap::new()));
    for times in READERS {
        let [wait, reading] = <[u64; 2]>::from(times).map(Duration::from_millis);
        let (names, pki, shown) = (Arc::clone(&names), Arc::clone(&pki), Arc::clone(&shown));
        looks.spawn(async move {
            let mut count = 0;
            while start.elapsed() < WATCHED {
                let source = async {
                    let seen = interface(present(start.elapsed()));
                    tokio::time::sleep(reading).await;
                    Ok::<_, Infallible>(vec![seen])
                };
                let seen = names.look_by(source).await;
                let now = start.elapsed();
                check(&pki, &shown, &seen[0], now);
                count += seen[0].addresses.len();
                tokio::time::sleep(wait).await;
            }
            count
        });
    }
    let count: usize = looks.join_all().await.into_iter().sum();
    assert!(count > 100, "{count} addresses were shown");
}
