//! Identification of the machine that sent a request over IP.

use std::net::IpAddr;
use std::sync::Arc;

use api::tinkerbell::Hardware;
use stdx::MacAddr;

use super::Index;

/// Sender of a request, found by source address and the kernel's neighbor table.
#[derive(Debug, Clone, PartialEq)]
pub enum Requester {
    /// Known machine, found by MAC or IP address.
    Machine(Arc<Hardware>),
    /// NIC that is in no Hardware, but uses the IP address of the known machine.
    OtherNic(Arc<Hardware>, MacAddr),
    /// No known machine has the MAC or the IP address.
    Unknown,
}

impl Requester {
    /// Returns the known machine; `None` for [`Self::OtherNic`] and [`Self::Unknown`].
    pub fn machine(self) -> Option<Arc<Hardware>> {
        match self {
            Self::Machine(hardware) => Some(hardware),
            Self::OtherNic(..) | Self::Unknown => None,
        }
    }
}

impl Index {
    /// Returns the sender of a request from `address`. On the box's own IPv4 links the hardware
    /// address decides, as for boot scripts ([`netboot::Reader`]). On other links the Hardware or
    /// the lease with the IP address decides.
    pub fn requester(&self, address: IpAddr) -> Requester {
        let neighbor = self.neighbor(address);
        let by_mac = neighbor.and_then(|mac| self.by_mac(mac));
        let by_address = || self.by_address(address);
        decide(neighbor, by_mac, by_address)
    }
}

fn decide(
    neighbor: Option<MacAddr>,
    by_mac: Option<Arc<Hardware>>,
    by_address: impl FnOnce() -> Option<Arc<Hardware>>,
) -> Requester {
    if let Some(hardware) = by_mac {
        return Requester::Machine(hardware);
    }
    match (by_address(), neighbor) {
        (Some(hardware), None) => Requester::Machine(hardware),
        (Some(hardware), Some(mac)) => Requester::OtherNic(hardware, mac),
        (None, _) => Requester::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::tinkerbell::Hardware;
    use stdx::MacAddr;

    use super::{Requester, decide};

    #[test]
    fn on_the_link_the_hardware_address_decides_whose_metadata_is_given() {
        let mac = MacAddr([2, 0, 0, 0, 0, 9]);
        let named = |name: &str| {
            let mut hardware = Hardware::default();
            hardware.metadata.name = name.to_owned();
            Arc::new(hardware)
        };
        let (one, two) = (named("one"), named("two"));
        let machine = |it: &Arc<Hardware>| Requester::Machine(Arc::clone(it));
        for (neighbor, by_mac, by_address, requester) in [
            (Some(mac), Some(&one), Some(&one), machine(&one)),
            // In proxy mode another server assigns the addresses, so they may differ from the
            // records.
            (Some(mac), Some(&one), Some(&two), machine(&one)),
            (Some(mac), Some(&one), None, machine(&one)),
            // A NIC that takes over the address of a machine is not treated as that machine.
            (Some(mac), None, Some(&two), Requester::OtherNic(Arc::clone(&two), mac)),
            (Some(mac), None, None, Requester::Unknown),
            // No neighbor entry: the machine is behind a router, or uses IPv6.
            (None, None, Some(&two), machine(&two)),
            (None, None, None, Requester::Unknown),
        ] {
            let found = decide(neighbor, by_mac.cloned(), || by_address.cloned());
            assert_eq!(found, requester, "{neighbor:?} {by_mac:?} {by_address:?}");
        }
    }
}
