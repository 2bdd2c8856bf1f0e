//! Who may read what starts a machine's agent: it carries the agent's token.
//!
//! Nothing that fetches a boot file can prove who it is, but on a link it has a hardware address,
//! and an answer only arrives if the kernel's neighbour table has the right one (RFC 826). So there
//! the hardware address decides, whoever gave the IP address: the box, or in proxy mode another
//! server. A machine behind a router has its router's hardware address, which says nothing, and of
//! IPv6 addresses the table is not read. Such a one is believed to be whom the box knows to have
//! the IP address, by a record or a lease, and where it knows nobody, nobody is believed: a machine
//! behind a router that has its address from another server needs that address in its record.

use std::net::IpAddr;

use stdx::MacAddr;

/// Who asks, as far as the network tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// Its IP address.
    pub address: IpAddr,
    /// Its hardware address; `None` when it is behind a router, or not known.
    pub neighbour: Option<MacAddr>,
}

impl Reader {
    /// Whether it is the machine with this interface and these addresses, by record or lease.
    pub fn is(self, mac: MacAddr, addresses: &[IpAddr]) -> bool {
        match self.neighbour {
            Some(neighbour) => neighbour == mac,
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
        for (neighbour, address, known, is) in [
            (Some(mac), own, Some(own), true),
            // In proxy mode another server gives the addresses, whatever the record says.
            (Some(mac), foreign, Some(own), true),
            (Some(mac), foreign, None, true),
            // Who takes a machine's address does not become that machine.
            (Some(other), own, Some(own), false),
            (Some(other), foreign, None, false),
            // Behind a router.
            (None, own, Some(own), true),
            (None, foreign, Some(own), false),
            (None, foreign, None, false),
        ] {
            let neighbour = neighbour.map(|mac| mac.parse().unwrap());
            let reader = Reader { address: address.parse().unwrap(), neighbour };
            let known: Vec<_> = known.iter().map(|known| known.parse().unwrap()).collect();
            assert_eq!(reader.is(mac.parse().unwrap(), &known), is, "{reader:?} {known:?}");
        }
    }
}
