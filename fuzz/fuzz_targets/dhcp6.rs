//! A datagram on port 547, from a known or an unknown machine.

#![no_main]

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Instant;

use dhcp::Netboot;
use dhcp::v6::{Config, Directory, Engine, Event, Identity, Observer, Reservation};
use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use stdx::MacAddr;

const SERVER: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe77, 1);
/// Maximum bytes of an answer; more than an answer through eight relays can have.
const ANSWER_MAX: usize = 4096;

/// Directory that returns the reservation that the bits of the input describe, or none.
struct Everyone(u8);

impl Directory for Everyone {
    fn find(&self, identity: Identity) -> Option<Reservation> {
        let is = |bit: u8| self.0 & (1 << bit) != 0;
        let mac = match identity {
            Identity::Mac(mac) if !is(1) => mac,
            Identity::Uuid(_) if !is(2) => MacAddr([2, 0, 0, 0, 0, 7]),
            _ => return None,
        };
        let mut known = Reservation::new(mac, Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0x11));
        known.netboot = if is(3) { Netboot::NotAllowed } else { Netboot::Allowed };
        known.name_servers = if is(4) { vec![SERVER; 100] } else { Vec::new() };
        known.ipxe_binary = is(5).then(|| "b".repeat(300));
        (!is(0)).then_some(known)
    }
}

impl Observer for Everyone {
    fn observe(&self, event: Event) {
        // Events are written to logs and to the history, so their text must be bounded.
        assert!(format!("{event:?}").len() < 16 << 10);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let everyone = Everyone(input.byte());
    let from = if input.byte() & 1 == 0 { LINK_LOCAL } else { SERVER };
    let interface = "eth0".to_owned();
    let config = Config { interface, server: SERVER, http_port: 7080, binaries: BTreeMap::new() };
    let now = Instant::now();
    let mut engine = Engine::new(config, MacAddr([2, 0, 0, 0, 0, 1]), now);
    let datagram = input.0;
    if let Ok(Some(answer)) = engine.handle(datagram, from, &everyone, &everyone, now) {
        assert!(answer.len() <= ANSWER_MAX, "{} bytes", answer.len());
        assert!(everyone.0 & 1 == 0, "a stranger was answered");
        if datagram[0] == 12 {
            assert_eq!(answer[0], 13, "a relay's answer");
            assert_eq!(answer[1..34], datagram[1..34], "the relay's exchange");
        } else {
            assert!(matches!(answer[0], 2 | 7), "a server's message");
            assert_eq!(answer[1..4], datagram[1..4], "the client's exchange");
        }
    }
});
