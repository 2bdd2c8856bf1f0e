//! Tests the choice of addresses, their reuse, and the changes to be stored.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use stdx::MacAddr;

use super::{Choice, GRACE_SECS, OFFER_SECS, QUARANTINE_SECS, RECHECK_SECS, Table};
use crate::config::subnet::{Range, Subnet};
use crate::config::{Config, Mode};
use crate::leases::{Change, LeaseCounts, LeaseState};
use crate::reservation::{Directory, Reservation};
use crate::vectors::SERVER;

const LEASE: u32 = 3600;

/// Directory without machines; its numbers are the last octets of reserved addresses.
struct Reserved(&'static [u8]);

impl Directory for Reserved {
    fn by_mac(&self, _: MacAddr) -> Option<Reservation> {
        None
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.0.contains(&address.octets()[3])
    }
}

const NO_RECORDS: Reserved = Reserved(&[]);

fn at(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, last)
}

fn mac(number: u32) -> MacAddr {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

fn config(first: u8, last: u8) -> Config {
    let mut config = Config::new("br0", SERVER);
    config.mode = Mode::Pool;
    let ranges = vec![Range { first: at(first), last: at(last) }];
    config.subnets = vec![Subnet { ranges, ..Subnet::new("10.77.0.0/24".parse().unwrap()) }];
    config
}

fn table(first: u8, last: u8) -> Table {
    Table::new(&config(first, last), &[])
}

fn offered(table: &mut Table, client: u32, now: u64) -> Option<u8> {
    offer(table, client, None, now).map(|choice| choice.address.octets()[3])
}

fn offer(table: &mut Table, client: u32, requested: Option<Ipv4Addr>, now: u64) -> Option<Choice> {
    table.offer(mac(client), 0, requested, &NO_RECORDS, now)
}

#[test]
fn the_former_address_then_the_hoped_for_then_an_unused_then_the_longest_ended() {
    let mut table = table(10, 13);
    assert_eq!(offered(&mut table, 1, 0), Some(10));
    table.bind(at(10), mac(1), LEASE, 0);
    let requested = offer(&mut table, 2, Some(at(13)), 0).unwrap();
    assert_eq!(requested.address, at(13));
    table.bind(at(13), mac(2), LEASE, 50);
    assert_eq!(offer(&mut table, 3, Some(at(10)), 60).unwrap().address, at(11), "10 is taken");
    assert_eq!(offer(&mut table, 4, Some(at(99)), 60).unwrap().address, at(12), "no pool has 99");
    assert_eq!(offered(&mut table, 1, 60), Some(10), "what it has");
    assert_eq!(offer(&mut table, 1, Some(at(12)), 60).unwrap().address, at(10));
    assert_eq!(offered(&mut table, 5, 60), None);
    let offers_over = 60 + OFFER_SECS;
    assert_eq!(offered(&mut table, 5, offers_over), Some(11), "an offer that was not accepted");
    let ended = u64::from(LEASE) + GRACE_SECS + 60;
    table.bind(at(11), mac(5), LEASE, offers_over);
    table.bind(at(12), mac(4), LEASE, offers_over);
    assert_eq!(offered(&mut table, 6, ended - 61), None, "not before the lease and its grace end");
    assert_eq!(offered(&mut table, 6, ended), Some(10), "ended before 13 did");
    assert_eq!(offered(&mut table, 2, ended), Some(13), "its former one, though ended");
}

#[test]
fn an_avalanche_is_given_no_address_twice() {
    let mut table = table(10, 209);
    let all: HashSet<_> = (0..200).map(|client| offered(&mut table, client, 5).unwrap()).collect();
    assert_eq!(all.len(), 200);
    assert_eq!(offered(&mut table, 200, 5), None);
    for client in 0..200 {
        let address = table.owned(mac(client), 0).unwrap();
        assert!(table.may_give(address, mac(client), 0, &NO_RECORDS, 5));
        assert!(!table.may_give(address, mac(client + 1), 0, &NO_RECORDS, 5));
    }
}

#[test]
fn what_is_reserved_is_given_to_nobody_else() {
    let mut table = table(10, 12);
    let reserved = Reserved(&[10, 11]);
    let choice = table.offer(mac(1), 0, Some(at(11)), &reserved, 0).unwrap();
    assert_eq!(choice.address, at(12));
    table.bind(at(12), mac(1), LEASE, 0);
    let all = Reserved(&[10, 11, 12]);
    assert!(!table.may_give(at(12), mac(1), 0, &all, 1), "not even to whom it was given before");
    assert_eq!(table.holder(at(12), 1), Some(mac(1)), "client still holds it");
    assert_eq!(table.offer(mac(1), 0, None, &all, 1), None);
}

#[test]
fn a_declined_address_rests_and_a_released_one_waits_for_its_owner() {
    let mut table = table(10, 11);
    table.offer(mac(1), 0, None, &NO_RECORDS, 0);
    table.bind(at(10), mac(1), LEASE, 0);
    assert!(!table.quarantine(at(10), mac(2), 1), "it is not this one's to decline");
    assert!(table.quarantine(at(10), mac(1), 1));
    assert_eq!(offered(&mut table, 1, 2), Some(11));
    table.bind(at(11), mac(1), LEASE, 2);
    assert!(!table.release(at(11), mac(2), 3));
    assert!(table.release(at(11), mac(1), 3));
    assert!(!table.release(at(11), mac(1), 3), "once");
    assert_eq!(offered(&mut table, 1, 4), Some(11), "the owner is remembered");
    assert_eq!(offered(&mut table, 2, 5), None, "10 still rests");
    assert_eq!(offered(&mut table, 2, 1 + QUARANTINE_SECS), Some(11), "free for longer");
    assert_eq!(offered(&mut table, 3, 1 + QUARANTINE_SECS), Some(10), "rested");
    let states: Vec<_> = table.take_changes();
    let states = states.iter().map(|change| match change {
        Change::Put(lease) => (lease.address.octets()[3], Some(lease.state)),
        Change::Remove(address) => (address.octets()[3], None),
    });
    let (bound, declined) = (Some(LeaseState::Bound), Some(LeaseState::Declined));
    let expected = [(10, bound), (10, declined), (11, bound), (11, Some(LeaseState::Released))];
    assert!(states.eq(expected), "an offer is nothing to write down");
}

#[test]
fn two_of_three_renewals_are_not_written_and_none_is_stored_too_short() {
    let mut table = table(10, 10);
    let mut stored = 0;
    let mut writes = 0;
    for renewal in 0..9 {
        let now = 1_000 + renewal * u64::from(LEASE / 2);
        table.bind(at(10), mac(1), LEASE, now);
        for change in table.take_changes() {
            let Change::Put(lease) = change else { panic!("{change:?}") };
            stored = lease.expires;
            writes += 1;
        }
        assert!(stored >= now + u64::from(LEASE) + GRACE_SECS, "what is promised is stored");
    }
    assert_eq!(writes, 3);
}

#[test]
fn a_restart_keeps_every_promise() {
    let mut before = table(10, 12);
    for client in 1..=2 {
        let address = offer(&mut before, client, None, 0).unwrap().address;
        before.bind(address, mac(client), LEASE, 0);
    }
    offer(&mut before, 3, None, 0);
    let leases = before.take_changes().into_iter().map(|change| match change {
        Change::Put(lease) => lease,
        Change::Remove(_) => panic!("{change:?}"),
    });
    let leases: Vec<_> = leases.collect();
    let mut after = Table::new(&config(10, 12), &leases);
    assert_eq!(after.holder(at(10), u64::from(LEASE)), Some(mac(1)));
    assert_eq!(offered(&mut after, 9, 5), Some(12), "an offer is not kept");
    assert_eq!(offered(&mut after, 2, 5), Some(11));
    assert_eq!(offered(&mut after, 8, 5), None);
}

#[test]
fn an_address_is_proven_by_its_owner_and_not_for_ever() {
    let mut table = table(10, 10);
    assert!(offer(&mut table, 1, None, 0).unwrap().unproven, "never given");
    table.bind(at(10), mac(1), 60, 10);
    assert!(!offer(&mut table, 1, None, 20).unwrap().unproven);
    assert!(offer(&mut table, 1, None, 11 + RECHECK_SECS).unwrap().unproven, "long silent");
    table.bind(at(10), mac(1), 60, 12 + RECHECK_SECS);
    let ended = 12 + RECHECK_SECS + 60 + GRACE_SECS;
    assert!(offer(&mut table, 2, None, ended).unwrap().unproven, "another's until now");
}

#[test]
fn other_pools_leave_leases_as_they_are() {
    let mut table = table(10, 11);
    for client in 1..=2 {
        let address = offer(&mut table, client, None, 0).unwrap().address;
        table.bind(address, mac(client), LEASE, 0);
    }
    table.reconfigure(&config(11, 12));
    assert_eq!(table.holder(at(10), 5), Some(mac(1)), "until it ends");
    assert!(!table.may_give(at(10), mac(1), 0, &NO_RECORDS, 5), "but it is not prolonged");
    assert_eq!(offered(&mut table, 1, 5), Some(12));
    assert_eq!(offered(&mut table, 2, 5), Some(11));
    let mut elsewhere = config(1, 9);
    elsewhere.subnets[0].prefix = "10.78.0.0/24".parse().unwrap();
    table.reconfigure(&elsewhere);
    table.take_changes();
    table.sweep(5);
    assert_eq!(table.holder(at(11), 5), Some(mac(2)));
    table.sweep(u64::from(LEASE) + GRACE_SECS);
    assert_eq!(table.leases().count(), 0, "ended, and no pool's");
    assert_eq!(table.take_changes().len(), 2, "the offer of 12 was never stored");
}

#[test]
fn what_is_given_away_is_counted_while_it_is() {
    let mut table = table(10, 12);
    assert_eq!(offered(&mut table, 1, 0), Some(10));
    assert_eq!(table.counts(0).leases, 0, "an offer is not a lease");
    table.bind(at(10), mac(1), LEASE, 0);
    table.bind(at(11), mac(2), LEASE, 0);
    assert_eq!(table.counts(0).leases, 2);
    assert!(table.release(at(11), mac(2), 1));
    assert_eq!(table.counts(1).leases, 1);
    assert_eq!(table.counts(u64::from(LEASE) + GRACE_SECS).leases, 0);
}

#[test]
fn leases_outside_the_pools_take_no_free_address() {
    let mut table = table(10, 20);
    assert_eq!(offered(&mut table, 1, 0), Some(10));
    table.bind(at(10), mac(1), LEASE, 0);
    assert_eq!(table.counts(0), LeaseCounts { leases: 1, pooled: 1 });
    table.reconfigure(&config(30, 40));
    assert_eq!(offered(&mut table, 2, 0), Some(30));
    table.bind(at(30), mac(2), LEASE, 0);
    assert_eq!(table.counts(0), LeaseCounts { leases: 2, pooled: 1 });
}
