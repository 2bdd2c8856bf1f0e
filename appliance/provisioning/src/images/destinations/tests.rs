//! Tests of allowed addresses, and of downloads by a real client.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use artifact_cache::registry::{Manifests as _, Reference};
use artifact_cache::{HttpOrigin, Origin as _, Refusal, RefusedAddress};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::routes::Routes;
use super::{Destinations, judge};
use artifact_cache::connector::{self, Check, Connector};

/// Routing table in which eth0 has the default route and eth1 is the rack.
const ROUTES: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
    eth0 00000000 0100A8C0 0003 0 0 0 00000000 0 0 0\n\
    eth1 00004D0A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";

#[test]
#[cfg(target_endian = "little")]
fn own_loopback_and_link_local_addresses_are_refused_and_other_networks_need_a_name() {
    let routes = Routes::parse(ROUTES, "");
    let own: IpAddr = [192, 168, 0, 1].into();
    let verdict = |address: &str, networks: &[&str]| {
        let networks: Vec<_> = networks.iter().map(|it| it.parse().unwrap()).collect();
        judge(address.parse().unwrap(), &networks, |it| it == own, &routes).is_ok()
    };
    let all = ["0.0.0.0/0", "::/0"];
    for refused in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "192.168.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::c0a8:1",
        "2002:7f00:1::1",
    ] {
        assert!(!verdict(refused, &all), "{refused}");
    }
    for other in ["10.77.0.9", "64:ff9b::10.77.0.9", "::ffff:10.77.0.9"] {
        assert!(!verdict(other, &["10.78.0.0/24"]), "{other}");
        assert!(verdict(other, &["10.77.0.0/24"]), "{other}");
    }
    for allowed in ["192.168.0.7", "198.51.100.7", "2001:db8::1", "64:ff9b::c633:6407"] {
        assert!(verdict(allowed, &[]), "{allowed}");
    }
}

/// Starts a server on 127.0.0.1, and returns a client that may connect to it. `answer` returns the
/// response.
async fn server(answer: impl Fn(u16) -> String) -> (HttpOrigin<Connector>, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = answer(port);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    // The second loopback address represents a refused address.
    let only: Check = Arc::new(|address: IpAddr| match address {
        IpAddr::V4(it) if it.octets() == [127, 0, 0, 1] => Ok(()),
        refused => Err(RefusedAddress(format!("{refused} is refused"))),
    });
    let plain = BTreeSet::from([format!("127.0.0.1:{port}")]);
    let origin = HttpOrigin::new(connector::make(None, only).unwrap());
    (origin.with_plain_registries(plain), port)
}

#[tokio::test]
async fn no_spelling_of_an_address_leads_to_the_box_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let destinations = Destinations::new(vec!["0.0.0.0/0".parse().unwrap()]);
    let check: Check = Arc::new(move |address| destinations.check(address));
    let origin = HttpOrigin::new(connector::make(None, check).unwrap());
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0",
        "localhost",
        "localhost.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
    ] {
        let refusal = origin.part(&format!("http://{host}:{port}/"), 0, None).await.err();
        let Some(refusal) = refusal else { panic!("{host} was fetched from") };
        // The client does not connect to an unknown name either.
        let is_refused = matches!(&refusal, Refusal::Never(why) if why.contains("the box itself"));
        let is_unknown = matches!(&refusal, Refusal::Later(why) if why.contains("dns error"));
        assert!(is_refused || (is_unknown && !host.starts_with("127")), "{host}: {refusal:?}");
    }
    let waiting = std::future::poll_fn(|context| {
        std::task::Poll::Ready(listener.poll_accept(context).is_ready())
    });
    assert!(!waiting.await, "the port was connected to");
}

#[tokio::test]
async fn no_redirect_leads_to_a_refused_address() {
    let (origin, port) = server(|port| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.2:{port}/\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        )
    })
    .await;
    let refusal = origin.part(&format!("http://127.0.0.1:{port}/"), 0, None).await.err().unwrap();
    assert_eq!(refusal, Refusal::Never("127.0.0.2 is refused".to_owned()));
}

#[tokio::test]
async fn no_registry_sends_the_box_for_a_token_to_a_refused_address() {
    let (origin, port) = server(|port| {
        format!(
            "HTTP/1.1 401 Unauthorized\r\n\
             www-authenticate: Bearer realm=\"http://127.0.0.2:{port}/token\"\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        )
    })
    .await;
    let reference = Reference::parse(&format!("127.0.0.1:{port}/a/b:c")).unwrap();
    let refusal = origin.manifest(&reference).await.err().unwrap();
    assert_eq!(refusal, Refusal::Never("127.0.0.2 is refused".to_owned()));
}
