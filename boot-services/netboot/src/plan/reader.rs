//! Decides which clients may read the boot files that contain the agent's token.
//!
//! A client that fetches a boot file cannot authenticate. On a directly connected link the box
//! knows the client's MAC address: an answer only arrives if the kernel's neighbor table has the
//! right one (RFC 826). So on a link the MAC address decides, whichever server assigned the IP
//! address: the box or, in proxy mode, another server.
//!
//! Behind a router, the neighbor table has the router's MAC address, which identifies no machine.
//! The neighbor table is not read for IPv6 addresses. In both cases the IP address decides: the
//! client is the machine that has this address by a record or a lease. Without a record or lease
//! the client gets nothing. So if a machine behind a router has its address from another server,
//! its record must have the address.

use std::net::IpAddr;

use stdx::MacAddr;

/// Client that reads a boot file, identified by its network addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// IP address of the client.
    pub address: IpAddr,
    /// Hardware address of the client; `None` behind a router, or without an entry in the neighbor
    /// table.
    pub neighbor: Option<MacAddr>,
}

impl Reader {
    /// Returns true if the client is the machine with this interface and these IP addresses, which
    /// come from a record or a lease.
    pub fn is(self, mac: MacAddr, addresses: &[IpAddr]) -> bool {
        match self.neighbor {
            Some(neighbor) => neighbor == mac,
            None => addresses.contains(&self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn on_the_link_the_hardware_address_decides_and_elsewhere_what_the_box_knows() {
        let (mac, other) = ("52:54:00:77:00:01", "52:54:00:77:00:02");
        let (own, foreign) = ("10.77.0.11", "10.77.0.99");
        for (neighbor, address, known, is) in [
            (Some(mac), own, Some(own), true),
            // In proxy mode another server assigns the addresses, whatever the record says.
            (Some(mac), foreign, Some(own), true),
            (Some(mac), foreign, None, true),
            // A client with the IP address of a machine does not become that machine.
            (Some(other), own, Some(own), false),
            (Some(other), foreign, None, false),
            // Clients behind a router have no neighbor entry.
            (None, own, Some(own), true),
            (None, foreign, Some(own), false),
            (None, foreign, None, false),
        ] {
            let neighbor = neighbor.map(|mac| mac.parse().unwrap());
            let reader = Reader { address: address.parse().unwrap(), neighbor };
            let known: Vec<_> = known.iter().map(|known| known.parse().unwrap()).collect();
            assert_eq!(reader.is(mac.parse().unwrap(), &known), is, "{reader:?} {known:?}");
        }
    }
}
