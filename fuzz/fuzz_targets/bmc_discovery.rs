//! A segment whose devices send any answer to the search for management controllers.

#![no_main]

use bmc_discovery::{amt_server, asf, ipmi, neighbors, ssdp};
use libfuzzer_sys::fuzz_target;

/// Maximum size of a datagram that the scan reads, in bytes.
const DATAGRAM_MAX: usize = 2048;

fuzz_target!(|bytes: &[u8]| {
    let datagram = &bytes[..bytes.len().min(DATAGRAM_MAX)];
    if let Some(pong) = asf::Pong::parse(datagram, 0x2a) {
        assert!(pong.amt.is_none_or(|amt| matches!(amt.port, 0 | 16992 | 16993)));
    }
    if let Some(guid) = ipmi::guid_response(datagram, 0x2a) {
        for uuid in ipmi::uuids(guid) {
            assert_eq!(uuid.len(), 36);
        }
    }
    if let Some(service) = ssdp::RedfishService::parse(datagram) {
        assert!(service.url.starts_with("http"));
        assert_eq!(service.uuid.len(), 36);
    }
    if let Some(server) = amt_server::read(datagram) {
        assert!(!server.contains(char::is_control), "a line was split");
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        neighbors(text);
    }
});
