//! Tests addresses of records outside a pool.

use super::*;

#[test]
fn a_reservation_is_offered_though_it_is_in_use_and_that_is_told() {
    let config = Config { conflict_checks: true, ..pool_config() };
    let mut bench = Bench::with(config, machine());
    let outputs = bench.send(udhcpc(DISCOVER));
    assert!(matches!(&outputs[..], [Output::Send(_), Output::Check { address: ADDRESS }]));
    let after =
        bench.engine.checked(ADDRESS, Some(OTHER), &bench.directory, &bench.events, bench.now);
    assert_eq!(after, []);
    let conflict = DhcpEvent::Conflict { mac: MAC, address: ADDRESS, holder: OTHER };
    assert_eq!(bench.events.take().last(), Some(&conflict));
    assert_eq!(bench.kind(udhcpc(DISCOVER)), Some((2, ADDRESS)), "and it is not asked again");
}

#[test]
fn a_reservation_of_a_leased_address_waits_for_the_lease_to_end() {
    let elsewhere = Reservation::without_address(MAC);
    let mut bench = Bench::with(pool_config(), elsewhere);
    let address = bench.lease(GUEST);
    bench.directory = One(Reservation::new(MAC, address, Ipv4Addr::new(255, 255, 255, 0)));
    assert_eq!(bench.kind(udhcpc(DISCOVER)), None);
    assert_eq!(bench.drop_reason(), Some(DropReason::LeasedTo(GUEST)));
    assert_eq!(bench.kind(renews(GUEST, address)), Some((6, Ipv4Addr::UNSPECIFIED)));
    bench.now += Duration::from_secs(3600 + 60);
    let outputs = bench.send(udhcpc(DISCOVER));
    assert!(matches!(&outputs[..], [Output::Send(_)]));
}

/// A board was replaced: its record has another MAC address, and the old board is gone.
#[test]
fn a_replaced_board_gets_the_address_of_its_record_at_once() {
    let record = |mac| Reservation::new(mac, at(9), Ipv4Addr::new(255, 255, 255, 0));
    for conflict_checks in [false, true] {
        let config = Config { conflict_checks, ..pool_config() };
        let mut bench = Bench::with(pool_config(), record(OTHER));
        assert_eq!(bench.kind(udhcpc(DISCOVER).mac(OTHER)), Some((2, at(9))));
        assert_eq!(bench.kind(selects(OTHER, at(9))), Some((5, at(9))));
        let leases: Vec<Lease> = bench.engine.leases().collect();
        // The box may be restarted in between.
        bench.engine = Engine::new(config, &leases, 1_000, bench.now);
        bench.directory = One(record(MAC));
        let offer = (Some((2, at(9))), [Change::Remove(at(9))]);
        if !conflict_checks {
            assert_eq!(bench.kind(udhcpc(DISCOVER)), offer.0);
            assert_eq!(bench.engine.take_changes(), offer.1);
            continue;
        }
        let found = |bench: &mut Bench, holder| {
            assert_eq!(bench.send(udhcpc(DISCOVER)), [Output::Check { address: at(9) }]);
            assert_eq!(bench.kind(udhcpc(DISCOVER)), None, "one check at a time");
            let Bench { engine, directory, events, now } = bench;
            engine.checked(at(9), holder, directory, events, *now)
        };
        assert_eq!(found(&mut bench, Some(OTHER)), [], "the old board is still there");
        assert!(matches!(&found(&mut bench, None)[..], [Output::Send(_), ..]));
        assert_eq!(bench.engine.take_changes(), offer.1);
        assert_eq!(bench.kind(selects(MAC, at(9))), Some((5, at(9))));
    }
}

#[test]
fn a_reservation_outside_of_the_clients_network_is_followed_and_told() {
    let mut bench = Bench::new();
    let outputs = bench.send(udhcpc(DISCOVER).giaddr(RELAY));
    assert!(matches!(&outputs[..], [Output::Send(_)]));
    let outside = DhcpEvent::OutsideSubnet { mac: MAC, address: ADDRESS, link: RELAY };
    assert!(bench.events.take().contains(&outside));
    bench.send(udhcpc(DISCOVER));
    assert!(
        !bench.events.take().iter().any(|event| matches!(event, DhcpEvent::OutsideSubnet { .. }))
    );
}
