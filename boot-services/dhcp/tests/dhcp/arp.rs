//! Tests ARP checks against the kernel at the other end of the link.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcp::arp::{Checker, WAIT};
use stdx::testing::Wait;
use tokio::time::Instant;

use crate::rack::{MAC, Wire, sh};

/// Last octets of the addresses that are checked at once; one address is in use.
const RACK: std::ops::RangeInclusive<u8> = 1..=200;

/// Checks all addresses of a rack at once; returns the addresses in use.
async fn used(checker: &Checker) -> Vec<(Ipv4Addr, stdx::MacAddr)> {
    let asked: Vec<_> = RACK
        .map(|last| {
            let (checker, address) = (checker.clone(), Ipv4Addr::new(10, 77, 0, last));
            tokio::spawn(async move { (address, checker.in_use(address).await) })
        })
        .collect();
    let mut used = Vec::new();
    for question in asked {
        let (address, user) = question.await.unwrap();
        used.extend(user.map(|mac| (address, mac)));
    }
    used
}

#[test]
fn used_addresses_are_told_from_free_ones() {
    let wire = Wire::new();
    let address = Ipv4Addr::new(10, 77, 0, 100);
    sh(&format!(
        "ip -n {} addr add {address}/24 dev nuc0; ip -n {} addr flush dev box0",
        wire.rack_space, wire.box_space
    ));
    let asking = wire.in_box(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let checker = Checker::open("box0").await.unwrap();
            // An answer later than WAIT counts as none. On a repeated check a busy machine answers
            // in time.
            let wait = Wait::new("only the used address to be reported");
            while used(&checker).await != [(address, MAC)] {
                tokio::time::sleep(wait.pause()).await;
            }
            // With virtual time and no answers, all checks wait together.
            tokio::time::pause();
            let begun = Instant::now();
            assert_eq!(checker.in_use(Ipv4Addr::new(10, 77, 0, 1)).await, None);
            let one = begun.elapsed();
            let begun = Instant::now();
            used(&checker).await;
            (one, begun.elapsed())
        })
    });
    let (one, all) = asking.join().unwrap();
    assert!(one >= WAIT && all < one * 2, "{one:?}, {all:?}");
    assert!(WAIT < Duration::from_secs(1), "clients ask again after a second or more");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let wire = Wire::new();
    let opening = wire.in_box(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Checker::open("nuc7")).err().unwrap()
    });
    let error = opening.join().unwrap();
    assert_eq!(error.to_string(), "cannot find the network interface nuc7");
}
