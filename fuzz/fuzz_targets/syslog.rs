//! Datagrams for the syslog receiver: each becomes one line, and the log does not exceed its
//! limits.

#![no_main]

use std::time::SystemTime;

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use syslog::{Entry, Log, MAX_TEXT, parse};

const MACHINE: usize = 4 << 10;
const TOTAL: usize = 8 << 10;

fuzz_target!(|bytes: &[u8]| {
    let log = Log::new(MACHINE, TOTAL);
    let mut input = Input(bytes);
    // The whole input is the first datagram, as in most seeds; then it is cut into several.
    let mut datagram = bytes;
    loop {
        let line = parse(datagram);
        assert!(line.text.len() <= MAX_TEXT);
        for part in [&line.text, &line.time, &line.host, &line.program, &line.process] {
            assert!(!part.chars().any(char::is_control), "{part:?}");
        }
        assert!(line.facility.is_none_or(|facility| facility < 24));
        let machine = ["a", "b", "c"][datagram.len() % 3];
        log.push(machine, Entry { received: SystemTime::UNIX_EPOCH, line });
        assert!(log.bytes() <= TOTAL);
        if input.is_empty() {
            break;
        }
        datagram = input.chunk();
    }
});
