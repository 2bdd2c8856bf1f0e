//! Tests pools, message by message (RFC 2131 §4.3).

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use stdx::MacAddr;

use crate::config::subnet::{Range, Subnet};
use crate::config::{Config, Mode};
use crate::engine::{Destination, Engine, Outgoing, Output, ServeMode};
use crate::events::{DhcpEvent, DropReason, Observer as _};
use crate::leases::{Change, Lease};
use crate::messages::options::Options;
use crate::reservation::{Netboot, Reservation};
use crate::vectors::*;

mod reserved;

const GUEST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 10]);
const RELAY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);

fn at(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, last)
}

fn subnet(prefix: &str, first: Ipv4Addr, last: Ipv4Addr) -> Subnet {
    Subnet { ranges: vec![Range { first, last }], ..Subnet::new(prefix.parse().unwrap()) }
}

fn pool_config() -> Config {
    let mut config = config();
    config.mode = Mode::Pool;
    let mut own = subnet("10.77.0.0/24", at(100), at(101));
    own.name_servers = vec![SERVER];
    own.domain_name = Some("pool.example".to_owned());
    let relayed = subnet("10.88.0.0/16", Ipv4Addr::new(10, 88, 1, 0), Ipv4Addr::new(10, 88, 1, 9));
    config.subnets = vec![own, relayed];
    config
}

struct Bench {
    engine: Engine,
    directory: One,
    events: EventLog,
    now: Instant,
}

impl Bench {
    fn with(config: Config, machine: Reservation) -> Self {
        let now = Instant::now();
        let engine = Engine::new(config, &[], 1_000, now);
        Self { engine, directory: One(machine), events: EventLog::default(), now }
    }

    fn new() -> Self {
        Self::with(pool_config(), machine())
    }

    fn send(&mut self, packet: Packet) -> Vec<Output> {
        self.engine.handle(&packet.end(), &self.directory, &self.events, self.now).unwrap()
    }

    /// Returns type, address and destination of the only answer.
    fn answer(&mut self, packet: Packet) -> Option<(u8, Ipv4Addr, Destination)> {
        let mut outputs = self.send(packet);
        assert!(outputs.len() < 2, "{outputs:?}");
        let Output::Send(outgoing) = outputs.pop()? else { panic!("a check") };
        let Outgoing { message, to, needs_commit, event } = outgoing;
        self.events.observe(event);
        let kind = Options::read(&message[240..], &[], &[]).unwrap().get(53).unwrap()[0];
        assert_eq!(needs_commit, kind == 5, "every ACK of a pool address is a promise");
        let address: [u8; 4] = message[16..20].try_into().unwrap();
        Some((kind, address.into(), to))
    }

    fn kind(&mut self, packet: Packet) -> Option<(u8, Ipv4Addr)> {
        self.answer(packet).map(|(kind, address, _)| (kind, address))
    }

    fn lease(&mut self, mac: MacAddr) -> Ipv4Addr {
        let (_, address) = self.kind(udhcpc(DISCOVER).mac(mac)).unwrap();
        assert_eq!(self.kind(selects(mac, address)), Some((5, address)));
        address
    }

    fn drop_reason(&self) -> Option<DropReason> {
        self.events.take().into_iter().rev().find_map(|event| match event {
            DhcpEvent::Ignored { reason, .. } => Some(reason),
            _ => None,
        })
    }
}

fn selects(mac: MacAddr, address: Ipv4Addr) -> Packet {
    udhcpc(REQUEST).mac(mac).option(54, &SERVER.octets()).option(50, &address.octets())
}

fn reboots(mac: MacAddr, address: Ipv4Addr) -> Packet {
    udhcpc(REQUEST).mac(mac).option(50, &address.octets())
}

fn renews(mac: MacAddr, address: Ipv4Addr) -> Packet {
    udhcpc(REQUEST).mac(mac).ciaddr(address)
}

#[test]
fn who_has_a_record_with_an_address_gets_it_and_everybody_else_one_of_the_pool() {
    let mut bench = Bench::new();
    assert_eq!(bench.kind(udhcpc(DISCOVER)), Some((2, ADDRESS)));
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(GUEST)), Some((2, at(100))));
    let events = bench.events.take();
    assert!(
        events.iter().any(|event| matches!(event, DhcpEvent::UnknownMac { drop_reason: None, .. }))
    );
    assert!(events.contains(&DhcpEvent::Offered { mac: GUEST, address: at(100) }));
    let mut bench = Bench::with(pool_config(), Reservation { fixed: None, ..machine() });
    assert_eq!(bench.kind(udhcpc(DISCOVER)), Some((2, at(100))));
}

#[test]
fn the_answer_says_what_the_record_says_and_else_what_the_subnet_says() {
    let record = Reservation {
        fixed: None,
        hostname: Some("nuc".to_owned()),
        ..Reservation::without_address(MAC)
    };
    let mut bench = Bench::with(pool_config(), record);
    let outputs = bench.send(udhcpc(DISCOVER));
    let [Output::Send(outgoing)] = &outputs[..] else { panic!("{outputs:?}") };
    let options = Options::read(&outgoing.message[240..], &[], &[]).unwrap();
    for (code, value) in [
        (1, &[255, 255, 255, 0][..]),
        (6, &SERVER.octets()),
        (12, b"nuc"),
        (15, b"pool.example"),
        (28, &[10, 77, 0, 255]),
        (51, &3600_u32.to_be_bytes()),
        (54, &SERVER.octets()),
    ] {
        assert_eq!(options.get(code), Some(value), "{code}");
    }
}

#[test]
fn a_stranger_boots_only_where_strangers_are_enrolled() {
    let file = |enroll| {
        let mut bench = Bench::with(Config { enroll, ..pool_config() }, machine());
        let outputs = bench.send(edk2_pxe(DISCOVER).mac(GUEST));
        let [Output::Send(outgoing)] = &outputs[..] else { panic!("{outputs:?}") };
        let file = outgoing.message[108..].split(|byte| *byte == 0).next().unwrap();
        String::from_utf8(file.to_vec()).unwrap()
    };
    assert_eq!(file(true), "snponly.efi");
    assert_eq!(file(false), "/netboot-not-allowed");
}

#[test]
fn one_machine_has_one_address_whatever_program_on_it_asks() {
    let mut bench = Bench::new();
    let firmware = bench.kind(edk2_pxe(DISCOVER).mac(GUEST)).unwrap();
    for packet in [ipxe_efi(DISCOVER), udhcpc(DISCOVER), bios_pxe(DISCOVER)] {
        assert_eq!(bench.kind(packet.mac(GUEST)), Some(firmware));
    }
    let client_id = Packet::new(0).option(53, &[1]).option(61, &[255, 1, 2, 3, 4, 5]);
    assert_eq!(bench.kind(client_id.mac(GUEST)), Some(firmware));
}

#[test]
fn requests_of_a_client_with_a_lease() {
    let mut bench = Bench::new();
    let address = bench.lease(GUEST);
    let nak = (6, Ipv4Addr::UNSPECIFIED);
    for (state, packet, answer) in [
        ("selecting again", selects(GUEST, address), (5, address)),
        ("selecting another's", selects(GUEST, at(101)), nak),
        ("after a reboot", reboots(GUEST, address), (5, address)),
        ("after a reboot, wrong", reboots(GUEST, at(101)), nak),
        ("after a reboot, elsewhere", reboots(GUEST, Ipv4Addr::new(192, 168, 1, 1)), nak),
        ("renewing", renews(GUEST, address), (5, address)),
        ("renewing another's", renews(GUEST, at(101)), nak),
        ("after a reboot, on another network", reboots(GUEST, address).giaddr(RELAY), nak),
    ] {
        assert_eq!(bench.kind(packet), Some(answer), "{state}");
    }
    let place = |packet, bench: &mut Bench| bench.answer(packet).unwrap().2;
    assert_eq!(place(renews(GUEST, address), &mut bench), Destination::Address(address));
    let wrong = reboots(GUEST, at(101));
    assert_eq!(place(wrong, &mut bench), Destination::Broadcast);
}

#[test]
fn whoever_is_not_ours_is_never_refused() {
    let mut bench = Bench::new();
    bench.lease(OTHER);
    for (state, packet) in [
        ("after a reboot", reboots(GUEST, at(100))),
        ("after a reboot, free address", reboots(GUEST, at(101))),
        ("after a reboot, elsewhere", reboots(GUEST, Ipv4Addr::new(192, 168, 1, 1))),
        ("renewing", renews(GUEST, at(100))),
        ("renewing elsewhere", renews(GUEST, Ipv4Addr::new(192, 168, 1, 1))),
        ("selecting what another has", selects(GUEST, at(100))),
    ] {
        assert_eq!(bench.kind(packet), None, "{state}");
        assert!(matches!(bench.drop_reason(), Some(DropReason::NotOurs(_))), "{state}");
    }
    // An offer from before a restart is still valid.
    assert_eq!(bench.kind(selects(GUEST, at(101))), Some((5, at(101))));
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(MacAddr([2; 6]))), None);
    assert_eq!(bench.drop_reason(), Some(DropReason::PoolExhausted));
}

#[test]
fn an_offer_not_taken_is_free_at_once_when_another_server_is_chosen() {
    let mut bench = Bench::new();
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(GUEST)), Some((2, at(100))));
    bench.lease(OTHER);
    let other = udhcpc(REQUEST).mac(GUEST).option(50, &at(7).octets()).option(54, &at(7).octets());
    assert_eq!(bench.kind(other), None);
    assert_eq!(bench.drop_reason(), Some(DropReason::OtherServer(at(7))));
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(MacAddr([2; 6]))), Some((2, at(100))));
}

#[test]
fn release_decline_and_inform() {
    let mut bench = Bench::new();
    let address = bench.lease(GUEST);
    let ours = SERVER.octets();
    assert_eq!(bench.kind(udhcpc(7).mac(OTHER).ciaddr(address).option(54, &ours)), None);
    assert_eq!(bench.drop_reason(), Some(DropReason::NotOurs(address)));
    assert_eq!(bench.kind(udhcpc(7).mac(GUEST).ciaddr(address).option(54, &ours)), None);
    assert!(bench.events.take().contains(&DhcpEvent::Released { mac: GUEST, address }));
    assert_eq!(bench.lease(GUEST), address);
    let decline = udhcpc(4).mac(GUEST).option(50, &address.octets()).option(54, &ours);
    assert_eq!(bench.kind(decline), None);
    assert!(bench.events.take().contains(&DhcpEvent::Declined { mac: GUEST, address }));
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(GUEST)), Some((2, at(101))));
    let outputs = bench.send(udhcpc(8).mac(GUEST).ciaddr(at(60)));
    let [Output::Send(outgoing)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(outgoing.to, Destination::Address(at(60)));
    let options = Options::read(&outgoing.message[240..], &[], &[]).unwrap();
    assert_eq!((options.get(51), options.get(53)), (None, Some(&[5][..])));
}

#[test]
fn the_subnet_is_the_relays_and_what_it_or_the_client_names_comes_before() {
    let here = Some((2, at(100)));
    let there = Some((2, Ipv4Addr::new(10, 88, 1, 0)));
    let unknown = Ipv4Addr::new(172, 16, 0, 1);
    let select = |address: Ipv4Addr| [&[5, 4][..], &address.octets()].concat();
    for (name, packet, answer) in [
        ("own link", udhcpc(DISCOVER), here),
        ("relay", udhcpc(DISCOVER).giaddr(RELAY), there),
        ("link selection", udhcpc(DISCOVER).giaddr(unknown).option(82, &select(RELAY)), there),
        ("subnet selection", udhcpc(DISCOVER).giaddr(unknown).option(118, &RELAY.octets()), there),
        (
            "both",
            udhcpc(DISCOVER).giaddr(RELAY).option(118, &RELAY.octets()).option(82, &select(at(1))),
            here,
        ),
        ("no subnet", udhcpc(DISCOVER).giaddr(unknown), None),
    ] {
        let mut bench = Bench::new();
        assert_eq!(bench.kind(packet.mac(GUEST)), answer, "{name}");
        if answer.is_none() {
            assert_eq!(bench.drop_reason(), Some(DropReason::NoSubnet(unknown)));
        }
    }
}

#[test]
fn an_address_is_checked_before_its_first_offer_only() {
    let config = Config { conflict_checks: true, ..pool_config() };
    let mut bench = Bench::with(config, machine());
    let check = |address| vec![Output::Check { address }];
    assert_eq!(bench.send(udhcpc(DISCOVER).mac(GUEST)), check(at(100)));
    assert_eq!(bench.send(edk2_pxe(DISCOVER).mac(GUEST)), [], "it is under way");
    assert_eq!(bench.drop_reason(), Some(DropReason::Checking(at(100))));
    let conclude = |bench: &mut Bench, address, holder| {
        bench.engine.checked(address, holder, &bench.directory, &bench.events, bench.now)
    };
    assert_eq!(conclude(&mut bench, at(100), Some(OTHER)), check(at(101)), "then another one");
    let conflict = DhcpEvent::Conflict { mac: GUEST, address: at(100), holder: OTHER };
    assert!(bench.events.take().contains(&conflict));
    let outputs = conclude(&mut bench, at(101), None);
    let [Output::Send(outgoing)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(outgoing.message[16..20], at(101).octets());
    assert_eq!(outgoing.to, Destination::Broadcast, "as the latest request wants it");
    assert_eq!(conclude(&mut bench, at(101), None), [], "once");
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(GUEST)), Some((2, at(101))), "checked lately");
    assert_eq!(bench.kind(selects(GUEST, at(101))), Some((5, at(101))));
    // A check without a result delays a client for seconds, not forever.
    bench.now += Duration::from_secs(2 * 3600);
    assert_eq!(bench.send(udhcpc(DISCOVER).mac(OTHER)), check(at(100)));
    bench.now += Duration::from_secs(5);
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(OTHER)), Some((2, at(100))));
}

#[test]
fn a_gate_that_closes_during_a_check_ends_the_search_for_another_address() {
    let mut bench = Bench::with(Config { conflict_checks: true, ..pool_config() }, machine());
    bench.send(udhcpc(DISCOVER).mac(GUEST));
    bench.engine.set_serve_mode(ServeMode::Closed);
    let Bench { engine, directory, events, now } = &mut bench;
    assert_eq!(engine.checked(at(100), Some(OTHER), directory, events, *now), []);
}

#[test]
fn other_settings_count_from_the_next_message_on() {
    let mut bench = Bench::new();
    let address = bench.lease(GUEST);
    let mut config = pool_config();
    config.subnets[0].ranges = vec![Range { first: at(200), last: at(201) }];
    bench.engine.reconfigure(config, bench.now);
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(OTHER)), Some((2, at(200))));
    assert_eq!(bench.kind(renews(GUEST, address)), Some((6, Ipv4Addr::UNSPECIFIED)));
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(GUEST)), Some((2, at(201))));
    bench.engine.reconfigure(crate::vectors::config(), bench.now);
    assert_eq!(bench.kind(renews(GUEST, address)), Some((6, Ipv4Addr::UNSPECIFIED)));
    assert_eq!(
        bench.kind(udhcpc(DISCOVER).mac(GUEST)),
        None,
        "reserved: unknown machines get nothing"
    );
    assert_eq!(bench.kind(renews(MacAddr([2; 6]), address)), None);
}

#[test]
fn a_closed_gate_answers_nothing_and_says_so() {
    let mut bench = Bench::new();
    bench.engine.set_serve_mode(ServeMode::Closed);
    for packet in [udhcpc(DISCOVER), edk2_pxe(DISCOVER), selecting(udhcpc(REQUEST))] {
        assert_eq!(bench.kind(packet.clone()), None);
        assert_eq!(bench.drop_reason(), Some(DropReason::Held));
        assert_eq!(bench.kind(packet.mac(GUEST)), None);
    }
    let held = |event: &DhcpEvent| {
        matches!(
            event,
            DhcpEvent::UnknownMac { mac: GUEST, drop_reason: Some(DropReason::Held), .. }
        )
    };
    assert!(bench.events.take().iter().any(held) || bench.drop_reason().is_none());
    bench.engine.set_serve_mode(ServeMode::ProxyOnly);
    assert_eq!(bench.kind(udhcpc(DISCOVER)), None, "no address");
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(GUEST)), None);
    assert_eq!(bench.kind(edk2_pxe(DISCOVER)), Some((2, Ipv4Addr::UNSPECIFIED)));
    bench.directory.0.netboot = Netboot::NotAllowed;
    assert_eq!(bench.kind(edk2_pxe(DISCOVER)), None);
    bench.engine.set_serve_mode(ServeMode::Open);
    assert_eq!(bench.kind(udhcpc(DISCOVER)), Some((2, ADDRESS)));
}

#[test]
fn what_is_promised_is_there_after_a_restart() {
    let mut bench = Bench::new();
    let address = bench.lease(GUEST);
    let changes = bench.engine.take_changes();
    let leases: Vec<Lease> = changes
        .into_iter()
        .map(|change| match change {
            Change::Put(lease) => lease,
            Change::Remove(_) => panic!("{change:?}"),
        })
        .collect();
    // The wall clock of the box is not set after a restart.
    bench.engine = Engine::new(pool_config(), &leases, 0, bench.now);
    assert_eq!(bench.kind(udhcpc(DISCOVER).mac(OTHER)), Some((2, at(101))));
    assert_eq!(bench.kind(reboots(GUEST, address)), Some((5, address)));
}

mod property;
