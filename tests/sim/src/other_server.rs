//! A second DHCP server, for a box in proxy mode. Each client has its own address for the whole
//! run, and answers contain no boot options.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::message::{ACK, DISCOVER, OFFER, REQUEST, Reply, read_ask};
use crate::rack::{LEASE_SECS, OTHER_SERVER, pool};

/// A DHCP server without boot options and without lease expiry.
#[derive(Debug, Default)]
pub struct OtherServer {
    addresses: HashMap<MacAddr, Ipv4Addr>,
}

impl OtherServer {
    /// The answer to a client's message.
    pub fn answer(&mut self, bytes: &[u8]) -> Option<Reply> {
        let ask = read_ask(bytes)?;
        let count = u32::try_from(self.addresses.len()).ok()?;
        let address = *self
            .addresses
            .entry(ask.mac)
            .or_insert_with(|| Ipv4Addr::from_bits(pool(false, 1).first.to_bits() + count));
        let kind = match (ask.kind, ask.server) {
            (DISCOVER, _) => OFFER,
            (REQUEST, None | Some(OTHER_SERVER)) => ACK,
            _ => return None,
        };
        let meant = ask.requested.unwrap_or(ask.ciaddr);
        if kind == ACK && meant != address {
            return None;
        }
        let (xid, mac, file) = (ask.xid, ask.mac, String::new());
        let (server, lease_secs, direct) = (OTHER_SERVER, LEASE_SECS, false);
        Some(Reply { kind, xid, mac, address, server, lease_secs, file, direct })
    }
}
