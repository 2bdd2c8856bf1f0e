//! Tests whole exchanges: answers, destinations and events.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stdx::MacAddr;

use super::{Destination, Engine, Outgoing, Output};
use crate::events::{DhcpEvent, DropReason, Observer as _};
use crate::messages::client::Stage;
use crate::messages::oracle;
use crate::reservation::Reservation;
use crate::vectors::*;

struct Bench {
    engine: Engine,
    directory: One,
    events: EventLog,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self::with(machine())
    }

    fn with(machine: Reservation) -> Self {
        let now = Instant::now();
        let engine = Engine::new(config(), &[], 0, now);
        Self { engine, directory: One(machine), events: EventLog::default(), now }
    }

    fn send(&mut self, packet: Packet) -> Option<Outgoing> {
        let outputs = self.engine.handle(&packet.end(), &self.directory, &self.events, self.now);
        let mut outputs = outputs.unwrap();
        assert!(outputs.len() < 2, "{outputs:?}");
        match outputs.pop()? {
            Output::Send(outgoing) => {
                self.events.observe(outgoing.event.clone());
                Some(outgoing)
            }
            Output::Check { .. } => None,
        }
    }

    fn place(&mut self, packet: Packet) -> Option<Destination> {
        self.send(packet).map(|outgoing| outgoing.to)
    }
}

#[test]
fn the_story_of_a_bios_boot() {
    let mut bench = Bench::new();
    let url = "http://10.77.0.1:7080/ipxe/script/52:54:00:77:00:01/auto.ipxe";
    bench.send(ipxe_bios(DISCOVER)).unwrap();
    bench.send(selecting(ipxe_bios(REQUEST))).unwrap();
    let stage = Stage::Ipxe;
    assert_eq!(
        bench.events.take(),
        [
            DhcpEvent::Discover { mac: MAC, stage },
            DhcpEvent::Offered { mac: MAC, address: ADDRESS },
            DhcpEvent::Requested { mac: MAC, address: ADDRESS, stage },
            DhcpEvent::Acked { mac: MAC, address: ADDRESS, file: Some(url.to_owned()) },
        ]
    );
}

#[test]
fn an_ack_is_not_told_before_it_is_sent() {
    let mut bench = Bench::new();
    let request = selecting(udhcpc(REQUEST)).end();
    let outputs = bench.engine.handle(&request, &bench.directory, &bench.events, bench.now);
    let [Output::Send(outgoing)] = &outputs.unwrap()[..] else { panic!("no answer") };
    assert_eq!(outgoing.event, DhcpEvent::Acked { mac: MAC, address: ADDRESS, file: None });
    assert!(!bench.events.take().contains(&outgoing.event));
}

#[test]
fn answers_go_where_rfc_2131_sends_them() {
    let mut bench = Bench::new();
    let link = Destination::Link { mac: MAC, address: ADDRESS };
    let relay = Ipv4Addr::new(10, 88, 0, 1);
    let other = Ipv4Addr::new(10, 77, 0, 99);
    let wrong = || udhcpc(REQUEST).option(50, &other.octets());
    for (name, packet, to) in [
        ("OFFER, flag clear", ipxe_bios(DISCOVER), link),
        ("OFFER, flag set", edk2_pxe(DISCOVER), Destination::Broadcast),
        ("ACK, flag clear", selecting(ipxe_bios(REQUEST)), link),
        ("ACK, flag set", edk2_pxe(REQUEST), Destination::Broadcast),
        ("renewal", udhcpc(REQUEST).ciaddr(ADDRESS), Destination::Address(ADDRESS)),
        ("NAK", wrong(), Destination::Broadcast),
        ("OFFER by relay", edk2_pxe(DISCOVER).giaddr(relay), Destination::Relay(relay)),
        ("NAK by relay", wrong().giaddr(relay), Destination::Relay(relay)),
        (
            "renewal by relay",
            udhcpc(REQUEST).ciaddr(ADDRESS).giaddr(relay),
            Destination::Relay(relay),
        ),
        ("INFORM", udhcpc(8).ciaddr(other), Destination::Address(other)),
        ("INFORM by relay", udhcpc(8).giaddr(relay), Destination::Relay(relay)),
        ("OFFER, stray ciaddr", udhcpc(DISCOVER).ciaddr(other), link),
        ("ACK, stray ciaddr", udhcpc(REQUEST).option(50, &ADDRESS.octets()).ciaddr(other), link),
    ] {
        assert_eq!(bench.place(packet), Some(to), "{name}");
    }
    assert_eq!(bench.place(udhcpc(8)), None, "an INFORM from nowhere");
}

#[test]
fn a_stranger_gets_silence_and_is_recorded_once() {
    let mut bench = Bench::new();
    let mac = MacAddr([0x52, 0x54, 0, 0x77, 0, 2]);
    for packet in [edk2_pxe(DISCOVER), edk2_pxe(DISCOVER), edk2_pxe(REQUEST), udhcpc(8)] {
        assert_eq!(bench.place(packet.mac(mac)), None);
    }
    let vendor_class = Some("PXEClient:Arch:00007:UNDI:003000".to_owned());
    let unknown = DhcpEvent::UnknownMac {
        mac,
        vendor_class,
        arch: Some(7),
        drop_reason: Some(DropReason::Unknown),
    };
    assert_eq!(bench.events.take(), [unknown]);
}

#[test]
fn refusals_and_returns_are_told() {
    let mut bench = Bench::new();
    let other = Ipv4Addr::new(10, 77, 0, 99);
    bench.send(udhcpc(REQUEST).option(50, &other.octets())).unwrap();
    let events = bench.events.take();
    assert!(
        matches!(&events[1], DhcpEvent::Refused { reason, .. } if reason.contains("10.77.0.99"))
    );

    let server = SERVER.octets();
    assert_eq!(bench.send(udhcpc(7).ciaddr(ADDRESS).option(54, &server)), None);
    assert_eq!(bench.events.take(), [DhcpEvent::Released { mac: MAC, address: ADDRESS }]);
    let decline = udhcpc(4).option(50, &ADDRESS.octets()).option(54, &server);
    assert_eq!(bench.send(decline), None);
    assert_eq!(bench.events.take(), [DhcpEvent::Declined { mac: MAC, address: ADDRESS }]);

    let mut bench = Bench::with(Reservation { disable_dhcp: true, ..machine() });
    assert_eq!(bench.send(udhcpc(8).ciaddr(ADDRESS)), None);
    assert_eq!(
        bench.events.take(),
        [DhcpEvent::Ignored { mac: MAC, reason: DropReason::Disabled }]
    );
}

#[test]
fn a_machine_that_floods_is_answered_at_the_limit() {
    let mut bench = Bench::new();
    let answered = (0..1000).filter(|_| bench.send(udhcpc(DISCOVER)).is_some()).count();
    assert_eq!(answered, 24);
    let too_fast = DhcpEvent::Ignored { mac: MAC, reason: DropReason::TooFast };
    assert_eq!(bench.events.take().iter().filter(|event| **event == too_fast).count(), 1);
    bench.now += Duration::from_secs(1);
    assert!(bench.send(udhcpc(DISCOVER)).is_some());
}

proptest! {
    #[test]
    fn any_datagram_is_answered_within_bounds(
        which in 0..7_usize,
        kind in 0_u8..10,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let made = [ipxe_bios, ipxe_efi, tinkerbell, edk2_pxe, edk2_http, bios_pxe, udhcpc];
        let mut bytes = made[which](kind).end();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            // The hardware address stays unchanged; otherwise almost no packet would get an answer.
            if !(28..34).contains(&at) {
                bytes[at] = value;
            }
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        let mut bench = Bench::new();
        let answer = bench.engine.handle(&bytes, &bench.directory, &bench.events, bench.now);
        for output in answer.unwrap_or_default() {
            let Output::Send(outgoing) = output else { continue };
            prop_assert!((300..=1472).contains(&outgoing.message.len()));
            prop_assert_eq!(outgoing.message[0], 2);
            oracle::agrees(&outgoing.message);
            prop_assert_eq!(&outgoing.message[4..8], &bytes[4..8]);
        }
    }
}
