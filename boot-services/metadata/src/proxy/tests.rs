//! Tests `X-Forwarded-For` lists of proxies, clients and attackers.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::{any, proptest};

use super::{FORWARDED_FOR, MAX_HOPS, Malformed, client};
use crate::Config;

fn ask(peer: &str, lines: &[&[u8]]) -> Result<String, Malformed> {
    let config = Config {
        trusted_proxies: vec!["10.0.0.0/24".parse().unwrap(), "fd00::/64".parse().unwrap()],
        ..Config::default()
    };
    let name = HeaderName::from_static(FORWARDED_FOR);
    let lines = lines.iter().map(|line| (name.clone(), HeaderValue::from_bytes(line).unwrap()));
    let peer: IpAddr = peer.parse().unwrap();
    let mut headers = HeaderMap::new();
    lines.for_each(|(name, line)| _ = headers.append(name, line));
    client(peer, &headers, &config).map(|address| address.to_string())
}

#[test]
fn only_a_proxy_of_ours_speaks_for_others() {
    let list: &[&[u8]] = &[b"10.77.0.11"];
    for (peer, client) in [
        ("10.77.0.9", "10.77.0.9"),
        ("::ffff:10.77.0.9", "10.77.0.9"),
        ("10.0.0.5", "10.77.0.11"),
        ("::ffff:10.0.0.5", "10.77.0.11"),
        ("fd00::5", "10.77.0.11"),
        ("fd00:0:0:1::5", "fd00:0:0:1::5"),
    ] {
        assert_eq!(ask(peer, list).unwrap(), client, "{peer}");
    }
    assert_eq!(ask("10.77.0.9", &[b"\xff,,"]).unwrap(), "10.77.0.9");
    assert_eq!(ask("10.0.0.5", &[]).unwrap(), "10.0.0.5");
}

#[test]
fn the_last_that_is_no_proxy_is_the_client() {
    for (lines, client) in [
        (&[b"10.77.0.12, 10.77.0.11" as &[u8]] as &[&[u8]], "10.77.0.11"),
        (&[b"10.77.0.12,10.77.0.11 , 10.0.0.9"], "10.77.0.11"),
        (&[b"10.77.0.12", b"10.77.0.11", b"10.0.0.9,fd00::9"], "10.77.0.11"),
        (&[b"garbage, \xff, 10.77.0.11"], "10.77.0.11"),
        (&[b"::ffff:10.77.0.11"], "10.77.0.11"),
        (&[b"2001:DB8::1"], "2001:db8::1"),
        (&[b"10.0.0.8, 10.0.0.9"], "10.0.0.8"),
    ] {
        assert_eq!(ask("10.0.0.5", lines).unwrap(), client, "{lines:?}");
    }
}

#[test]
fn an_unreadable_list_is_refused() {
    let long = vec!["10.0.0.9"; MAX_HOPS + 1].join(",");
    for line in [
        b"" as &[u8],
        b"unknown",
        b"10.77.0.11:80",
        b"[fd01::1]",
        b"fe80::1%eth0",
        b"10.77.0.11,",
        b"10.77.0.11 10.77.0.12",
        b"10.077.0.11",
        b"\xff",
        long.as_bytes(),
    ] {
        assert_eq!(ask("10.0.0.5", &[line]), Err(Malformed), "{line:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(line in proptest::collection::vec(any::<u8>(), 0..100)) {
        if HeaderValue::from_bytes(&line).is_ok() {
            let _ = ask("10.0.0.5", &[&line]);
        }
    }
}
