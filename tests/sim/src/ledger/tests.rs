//! Tests that break the rules of the ledger.

use std::net::Ipv4Addr;

use dhcp::{Lease, LeaseState, ServeMode};
use stdx::MacAddr;

use super::{Durable, Ledger, Sight, Violation};
use crate::clock::SECOND;
use crate::message::{ACK, NAK, OFFER, Reply};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const FIRST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const SECOND_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn reply(kind: u8, mac: MacAddr) -> Reply {
    let (server, file) = (Ipv4Addr::new(10, 0, 0, 1), String::new());
    Reply { kind, xid: 1, mac, address: ADDRESS, server, lease_secs: 60, file, direct: false }
}

fn sight(mac: MacAddr, lasts: u64) -> Sight {
    let state = LeaseState::Bound;
    let lease = Lease {
        address: ADDRESS,
        mac,
        state,
        expires: 100 + lasts,
        last_seen: 100,
        reserved: false,
    };
    Sight { pooled: true, known: false, proxy: false, durable: Durable(Some(lease), 100) }
}

#[test]
fn an_address_is_one_machines_until_its_lease_ends_or_it_gives_it_back() {
    let mut ledger = Ledger::default();
    let give = |ledger: &mut Ledger, mac, at| ledger.sent(&reply(ACK, mac), sight(mac, 60), at);
    assert_eq!(give(&mut ledger, FIRST, 0), Ok(()));
    assert_eq!(give(&mut ledger, FIRST, SECOND), Ok(()));
    let broken = give(&mut ledger, SECOND_MAC, 60 * SECOND).unwrap_err();
    assert!(matches!(broken, Violation::Promised { left: 1, .. }), "{broken}");
    assert_eq!(give(&mut ledger, FIRST, 121 * SECOND), Ok(()), "it ended");
    ledger.gives_back(ADDRESS, SECOND_MAC);
    assert!(give(&mut ledger, SECOND_MAC, 122 * SECOND).is_err(), "not its own to give back");
    ledger.gives_back(ADDRESS, SECOND_MAC);
    assert_eq!(give(&mut ledger, FIRST, 123 * SECOND), Ok(()));
}

#[test]
fn two_machines_that_use_one_address_are_noticed() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.uses(ADDRESS, FIRST, 60, 0), Ok(()));
    assert_eq!(ledger.user(ADDRESS), Some(FIRST));
    assert!(matches!(ledger.uses(ADDRESS, SECOND_MAC, 90, 59), Err(Violation::Shared { .. })));
    assert_eq!(ledger.uses(ADDRESS, FIRST, 150, 90), Ok(()), "the other's is over");
    ledger.leaves(ADDRESS, FIRST);
    assert_eq!((ledger.user(ADDRESS), ledger.in_use()), (None, 0));
    assert_eq!(ledger.uses(ADDRESS, SECOND_MAC, 200, 91), Ok(()));
}

#[test]
fn an_ack_wants_a_durable_lease_of_that_machine_for_that_time() {
    let ack = reply(ACK, FIRST);
    let nothing = Sight { durable: Durable(None, 100), ..sight(FIRST, 60) };
    let given_back = |mac| {
        let Durable(lease, now) = sight(mac, 0).durable;
        let lease = lease.map(|lease| Lease { state: LeaseState::Released, ..lease });
        Sight { durable: Durable(lease, now), ..sight(mac, 0) }
    };
    for (sight, is_fine) in [
        (sight(FIRST, 60), true),
        (sight(FIRST, 59), false),
        (sight(SECOND_MAC, 60), false),
        (nothing, false),
        (given_back(FIRST), true),
        (given_back(SECOND_MAC), false),
        (Sight { pooled: false, ..nothing }, true),
    ] {
        assert_eq!(Ledger::default().sent(&ack, sight, 0).is_ok(), is_fine, "{sight:?}");
    }
}

#[test]
fn strangers_are_not_refused_and_a_proxy_gives_no_address() {
    let (mut ledger, sight) = (Ledger::default(), sight(FIRST, 60));
    let nak = Reply { address: Ipv4Addr::UNSPECIFIED, ..reply(NAK, FIRST) };
    assert_eq!(ledger.sent(&nak, sight, 0), Err(Violation::Refused(FIRST)));
    assert_eq!(ledger.sent(&nak, Sight { known: true, ..sight }, 0), Ok(()));
    ledger.sent(&reply(OFFER, FIRST), sight, 0).unwrap();
    assert_eq!(ledger.sent(&nak, sight, 0), Ok(()), "it was offered something");
    let proxy = Sight { proxy: true, ..sight };
    assert!(ledger.sent(&reply(OFFER, FIRST), proxy, 0).is_err());
}

#[test]
fn a_closed_gate_lets_nothing_out_and_a_half_closed_one_boot_files_alone() {
    let ledger = Ledger::default();
    let (offer, nothing) = (reply(OFFER, FIRST), Ipv4Addr::UNSPECIFIED);
    let boot_file = Reply { address: nothing, ..offer.clone() };
    for (gate, reply, known, is_fine) in [
        (ServeMode::Open, &offer, false, true),
        (ServeMode::Closed, &boot_file, true, false),
        (ServeMode::ProxyOnly, &offer, true, false),
        (ServeMode::ProxyOnly, &boot_file, false, false),
        (ServeMode::ProxyOnly, &boot_file, true, true),
    ] {
        assert_eq!(ledger.decided(reply, gate, known).is_ok(), is_fine, "{gate:?} {reply:?}");
    }
}
