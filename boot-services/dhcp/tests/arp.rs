//! Who uses an address, asked of the kernel at the wire's other end.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod rack;

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use dhcp::arp::{Checker, WAIT};
use rack::{MAC, Wire, sh};

#[test]
fn used_addresses_are_told_from_free_ones() {
    let wire = Wire::new();
    let used = Ipv4Addr::new(10, 77, 0, 100);
    sh(&format!(
        "ip -n {} addr add {used}/24 dev nuc0; ip -n {} addr flush dev box0",
        wire.rack_space, wire.box_space
    ));
    let asking = wire.in_box(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let checker = Checker::open("box0").await.unwrap();
            assert_eq!(checker.in_use(used).await, Some(MAC));
            // A whole rack asks at once: all wait together, and only one is refused.
            let start = Instant::now();
            let asked: Vec<_> = (1..=200)
                .map(|last| {
                    let (checker, address) = (checker.clone(), Ipv4Addr::new(10, 77, 0, last));
                    tokio::spawn(async move { (address, checker.in_use(address).await) })
                })
                .collect();
            for question in asked {
                let (address, user) = question.await.unwrap();
                assert_eq!(user, (address == used).then_some(MAC), "{address}");
            }
            start.elapsed()
        })
    });
    let took = asking.join().unwrap();
    assert!(took >= WAIT && took < 200 * WAIT / 10, "{took:?}");
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
