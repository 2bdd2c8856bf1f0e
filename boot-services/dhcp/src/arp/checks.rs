//! ARP checks in progress: the waiting callers, and the frames that answer a check.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr,
};
use stdx::MacAddr;

/// Time to wait for an answer to a check, both probes included.
pub const WAIT: Duration = Duration::from_millis(300);
/// Delay of the second probe: a switch that learns or a station that wakes up may lose the first.
pub(super) const SECOND: Duration = Duration::from_millis(120);
/// Maximum addresses that are checked at once; a rack that is switched on needs fewer.
pub(super) const CHECKS_MAX: usize = 1024;

const ETHERNET: usize = 14;
const ARP: usize = 28;
/// Minimum Ethernet frame in bytes, without the checksum; shorter frames are padded.
const FRAME_MIN: usize = 60;

/// Addresses being checked, each with its number of callers and the MAC that answered, if any.
#[derive(Debug, Default)]
pub(super) struct Checks(HashMap<Ipv4Addr, Check>);

#[derive(Debug, Default)]
struct Check {
    callers: usize,
    answer: Option<MacAddr>,
}

impl Checks {
    /// Adds a caller to the check of `address`; `None` if [`CHECKS_MAX`] checks are in progress.
    pub fn add(&mut self, address: Ipv4Addr) -> Option<()> {
        if self.0.len() >= CHECKS_MAX && !self.0.contains_key(&address) {
            return None;
        }
        self.0.entry(address).or_default().callers += 1;
        Some(())
    }

    /// Removes a caller from the check of `address`; the last caller ends the check.
    pub fn remove(&mut self, address: Ipv4Addr) {
        if let Some(check) = self.0.get_mut(&address) {
            check.callers -= 1;
            if check.callers == 0 {
                self.0.remove(&address);
            }
        }
    }

    /// Processes a received frame. Returns true if the frame is the first answer to a check.
    pub fn receive(&mut self, frame: &[u8], ours: MacAddr) -> bool {
        let Some((address, mac)) = claimant(frame).filter(|(_, mac)| *mac != ours) else {
            return false;
        };
        let open = self.0.get_mut(&address).filter(|check| check.answer.is_none());
        open.map(|check| check.answer = Some(mac)).is_some()
    }

    pub fn answer(&self, address: Ipv4Addr) -> Option<MacAddr> {
        self.0.get(&address)?.answer
    }
}

/// Returns the IPv4 address that an ARP frame claims, and the claiming station's MAC. A claim is a
/// sender address, or a probe for the address (RFC 5227 §2.1.1: both are conflicts).
pub fn claimant(frame: &[u8]) -> Option<(Ipv4Addr, MacAddr)> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    if frame.ethertype() != EthernetProtocol::Arp {
        return None;
    }
    let packet = ArpPacket::new_checked(frame.payload()).ok()?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&packet).ok()?
    else {
        return None;
    };
    let station = MacAddr(source_hardware_addr.0);
    let is_probe = source_protocol_addr.is_unspecified() && operation == ArpOperation::Request;
    let address = if is_probe { target_protocol_addr } else { source_protocol_addr };
    let sensible = source_hardware_addr.is_unicast() && !address.is_unspecified();
    sensible.then_some((address, station))
}

/// Returns the Ethernet frame of an ARP probe for `address`.
pub(super) fn probe(address: Ipv4Addr, ours: MacAddr) -> Vec<u8> {
    let mut frame = vec![0; FRAME_MIN];
    let station = EthernetAddress(ours.0);
    EthernetRepr {
        src_addr: station,
        dst_addr: EthernetAddress::BROADCAST,
        ethertype: EthernetProtocol::Arp,
    }
    .emit(&mut EthernetFrame::new_unchecked(&mut frame));
    let arp = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: station,
        source_protocol_addr: Ipv4Addr::UNSPECIFIED,
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: address,
    };
    arp.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET..ETHERNET + ARP]));
    frame
}

#[cfg(test)]
mod tests {
    use super::{CHECKS_MAX, Checks, claimant, probe};
    use std::net::Ipv4Addr;
    use stdx::MacAddr;

    const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);

    /// ARP reply of the station `THEIRS`, as `arping` would receive it.
    fn reply() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 6];
        frame.extend([0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 2, 10, 77, 0, 100]);
        frame.extend([2, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        frame
    }

    #[test]
    fn a_probe_is_rfc_5227s() {
        let frame = probe(ADDRESS, OURS);
        assert_eq!(frame.len(), 60);
        let head = [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6];
        assert_eq!(frame[..14], head);
        let request = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(frame[14..32], request);
        assert_eq!(frame[32..42], [0, 0, 0, 0, 0, 0, 10, 77, 0, 100]);
    }

    #[test]
    fn users_and_probers_of_an_address_claim_it() {
        assert_eq!(claimant(&reply()), Some((ADDRESS, THEIRS)));
        assert_eq!(claimant(&probe(ADDRESS, THEIRS)), Some((ADDRESS, THEIRS)));
        let mut group = reply();
        group[22] = 3;
        assert_eq!(claimant(&group), None);
        let mut no_address = reply();
        no_address[28..32].fill(0);
        assert_eq!(claimant(&no_address), None);
        for length in 0..42 {
            assert_eq!(claimant(&reply()[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn what_is_asked_is_answered_once_and_forgotten() {
        let mut checks = Checks::default();
        assert!(!checks.receive(&reply(), OURS), "no caller waits");
        checks.add(ADDRESS).unwrap();
        checks.add(ADDRESS).unwrap();
        assert!(!checks.receive(&probe(ADDRESS, OURS), OURS), "our own probe");
        assert!(checks.receive(&reply(), OURS));
        assert!(!checks.receive(&reply(), OURS));
        checks.remove(ADDRESS);
        assert_eq!(checks.answer(ADDRESS), Some(THEIRS));
        checks.remove(ADDRESS);
        assert!(checks.0.is_empty());
        assert_eq!(checks.answer(ADDRESS), None);
    }

    #[test]
    fn no_more_is_asked_than_fits() {
        let mut checks = Checks::default();
        let address = |n: usize| Ipv4Addr::from_bits(0x0a00_0000 + n as u32);
        for n in 0..CHECKS_MAX {
            checks.add(address(n)).unwrap();
        }
        assert_eq!(checks.add(address(CHECKS_MAX)), None);
        assert_eq!(checks.add(address(0)), Some(()), "it is asked about already");
    }
}
