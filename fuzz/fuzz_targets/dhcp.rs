//! A datagram on port 67, from a machine that the box knows or not.

#![no_main]

use std::net::Ipv4Addr;
use std::time::Instant;

use dhcp::{Config, Directory, Engine, Netboot, Observer, Reservation, Route, Seen};
use fuzz::{Input, KNOWN};
use libfuzzer_sys::fuzz_target;
use stdx::MacAddr;

/// The longest UDP payload of an Ethernet frame.
const FRAME_MAX: usize = 1472;

/// Knows everyone, each by the record that the input chooses.
struct Everyone(u8);

impl Directory for Everyone {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        let is = |bit: u8| self.0 & (1 << bit) != 0;
        if is(0) {
            return None;
        }
        let mut known = Reservation::new(mac, KNOWN, Ipv4Addr::new(255, 255, 255, 0));
        known.disable_dhcp = is(1);
        known.netboot = if is(2) { Netboot::NotAllowed } else { Netboot::Allowed };
        if is(3) {
            known.hostname = Some("h".repeat(300));
            known.domain_name = Some("d.".repeat(150));
        }
        if is(4) {
            known.name_servers = vec![KNOWN; 100];
            known.time_servers = vec![KNOWN; 100];
            let destination = "24.192.0.2".parse().expect("a prefix");
            known.classless_static_routes = vec![Route { destination, router: KNOWN }; 60];
        }
        if is(5) {
            known.boot_file_name = Some("b".repeat(200));
            known.tftp_server_name = Some("t".repeat(100));
        }
        known.ipxe_binary = is(6).then(|| "snp.efi".to_owned());
        Some(known)
    }
}

impl Observer for Everyone {
    fn seen(&self, seen: Seen) {
        // What is told is printed into logs and stories.
        assert!(format!("{seen:?}").len() < 16 << 10);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let everyone = Everyone(input.byte());
    let now = Instant::now();
    let config = Config::new("eth0", Ipv4Addr::new(10, 77, 0, 1));
    let mut engine = Engine::new(config, now);
    let datagram = input.0;
    if let Ok(Some(reply)) = engine.handle(datagram, &everyone, &everyone, now) {
        let message = reply.message;
        assert_eq!(message[0], 2, "a server's message");
        assert_eq!(message[4..8], datagram[4..8], "the client's exchange");
        assert_eq!(message[28..34], datagram[28..34], "the client's address");
        assert!((240..=FRAME_MAX).contains(&message.len()), "{} bytes", message.len());
        assert!(everyone.0 & 3 == 0, "a stranger, or one that wants silence, was answered");
    }
});
