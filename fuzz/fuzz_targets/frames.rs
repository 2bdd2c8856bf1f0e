//! A frame of the network, as input of the detection of other DHCP servers and of the ARP check.

#![no_main]

use std::net::Ipv4Addr;

use dhcp::arp::claimant;
use dhcp::foreign::{OwnServers, sighting};
use libfuzzer_sys::fuzz_target;
use stdx::MacAddr;

fuzz_target!(|frame: &[u8]| {
    let own = OwnServers {
        servers: vec![Ipv4Addr::new(10, 77, 0, 1)],
        macs: vec![MacAddr([0x52, 0x54, 0, 0x77, 0, 1])],
    };
    let source = frame.get(6..12).map(|bytes| MacAddr(bytes.try_into().expect("six bytes")));
    if let Some(seen) = sighting(frame, &own) {
        assert!(source.is_some_and(|source| !own.macs.contains(&source)), "our own frame");
        assert!(seen.mac.is_none_or(|mac| Some(mac) == source), "another's address");
        if seen.mac.is_none() {
            assert!(!own.servers.contains(&seen.server), "a client that takes our offer");
        }
    }
    if let Some((address, mac)) = claimant(frame) {
        assert!(!address.is_unspecified() && mac.0[0] & 1 == 0, "{address} by {mac}");
    }
});
