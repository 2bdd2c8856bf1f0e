//! NTP: answers of servers, and requests to the box.

#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use ntp::{BYTES, ClockState, Packet, RequestTimes, Timestamp, answer, evaluate};

fuzz_target!(|data: &[u8]| {
    if let Some(packet) = Packet::decode(data) {
        assert_eq!(packet.encode(), data[..BYTES]);
        let times = RequestTimes { sent: Timestamp(1), received: Timestamp(u64::MAX) };
        let _ = evaluate(data, packet.origin, times, Ipv4Addr::LOCALHOST.into());
    }
    for state in [ClockState::Unset, ClockState::Holdover(None)] {
        if let Some(said) = answer(data, &state, Timestamp(7), || Timestamp(8)) {
            assert!(said.len() <= data.len(), "more is sent than came");
            assert!(answer(&said, &state, Timestamp(7), || Timestamp(8)).is_none());
        }
    }
});
