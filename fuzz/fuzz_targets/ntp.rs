//! The time: what servers answer, and what is asked of the box.

#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use ntp::{BYTES, Packet, Standing, Timestamp, answer, judge};

fuzz_target!(|data: &[u8]| {
    if let Some(packet) = Packet::decode(data) {
        assert_eq!(packet.encode(), data[..BYTES]);
        let times = (Timestamp(1), Timestamp(u64::MAX));
        let _ = judge(data, packet.origin, times, Ipv4Addr::LOCALHOST.into());
    }
    for standing in [Standing::Unset, Standing::Holdover(None)] {
        if let Some(said) = answer(data, &standing, Timestamp(7), || Timestamp(8)) {
            assert!(said.len() <= data.len(), "more is sent than came");
            assert!(answer(&said, &standing, Timestamp(7), || Timestamp(8)).is_none());
        }
    }
});
