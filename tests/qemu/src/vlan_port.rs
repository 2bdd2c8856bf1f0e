//! A switch port with a native VLAN and a tagged VLAN; the box is in both. Frames without a tag
//! belong to the native VLAN, as boot ROMs send them; frames with the tag belong to the tagged one.
//!
//! Bridges of many kernels do not support VLANs, so the port is implemented here. It removes the
//! tag from the NUC's frames, and sends every frame to the NUC in both VLANs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;
use crate::splice::Splice;

/// Length of the two MAC addresses before the tag.
const ADDRESSES: usize = 12;
/// Length of an IEEE 802.1Q tag in bytes: protocol identifier and VLAN number.
const TAG: usize = 4;
const IDENTIFIER: [u8; 2] = [0x81, 0x00];
/// Bits of a tag that contain the VLAN number.
const NUMBER: u16 = 0x0fff;
const IPV4: [u8; 2] = [0x08, 0x00];

/// Switch port of one NUC.
#[derive(Debug)]
pub struct VlanPort {
    said: Arc<Said>,
    _splices: [Splice; 2],
}

/// Counts of IPv4 packets from a NUC.
#[derive(Debug, Default)]
struct Said {
    tagged: AtomicUsize,
    bare: AtomicUsize,
}

/// IPv4 packets that a NUC sent through its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTraffic {
    /// Packets in the tagged VLAN.
    pub tagged: usize,
    /// Packets in the native VLAN after the first packet in the tagged VLAN.
    pub bare_since: usize,
}

impl VlanPort {
    /// Starts a port with the tagged VLAN `number`. `up` is for packets from the NUC, `down` for
    /// packets to the NUC. Each is a pair of sockets: the first receives packets from QEMU, and the
    /// second returns them to QEMU.
    pub fn start(number: u16, up: [&Path; 2], down: [&Path; 2]) -> Result<Self, Error> {
        let said = Arc::<Said>::default();
        let there = Arc::clone(&said);
        let up = Splice::start(up[0], up[1], move |frame| there.hear(frame, number))?;
        let both = move |frame: Vec<u8>| {
            let tagged = tag(&frame, number);
            std::iter::once(frame).chain(tagged).collect()
        };
        let down = Splice::start(down[0], down[1], both)?;
        Ok(Self { said, _splices: [up, down] })
    }

    /// Traffic of the NUC so far.
    pub fn traffic(&self) -> VlanTraffic {
        VlanTraffic {
            tagged: self.said.tagged.load(Ordering::SeqCst),
            bare_since: self.said.bare.load(Ordering::SeqCst),
        }
    }
}

impl Said {
    fn hear(&self, frame: Vec<u8>, ours: u16) -> Vec<Vec<u8>> {
        let is_ipv4 = |frame: &[u8]| frame.get(ADDRESSES..ADDRESSES + 2) == Some(&IPV4);
        match untag(&frame) {
            Some((number, bare)) if number == ours => {
                self.tagged.fetch_add(usize::from(is_ipv4(&bare)), Ordering::SeqCst);
                vec![bare]
            }
            // The port is not a member of this VLAN.
            Some(_) => Vec::new(),
            None => {
                if is_ipv4(&frame) && self.tagged.load(Ordering::SeqCst) > 0 {
                    self.bare.fetch_add(1, Ordering::SeqCst);
                }
                vec![frame]
            }
        }
    }
}

/// Returns the frame with the tag of VLAN `number`; `None` for a frame that is too short.
fn tag(frame: &[u8], number: u16) -> Option<Vec<u8>> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    Some([addresses, &IDENTIFIER, &number.to_be_bytes(), rest].concat())
}

/// Returns the VLAN of a tagged frame, and the frame without its tag; `None` for a frame without a
/// tag.
fn untag(frame: &[u8]) -> Option<(u16, Vec<u8>)> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    let (tag, rest) = rest.split_at_checked(TAG)?;
    let number = tag.strip_prefix(&IDENTIFIER[..])?.try_into().ok()?;
    Some((u16::from_be_bytes(number) & NUMBER, [addresses, rest].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        [&[1; 6][..], &[2; 6], &IPV4, b"packet"].concat()
    }

    #[test]
    fn a_tag_comes_and_goes() {
        let tagged = tag(&frame(), 7).expect("a frame");
        assert_eq!(tagged.get(12..18), Some(&[0x81, 0, 0, 7, 8, 0][..]));
        assert_eq!(untag(&tagged), Some((7, frame())));
        assert_eq!(untag(&frame()), None);
        // The priority bits are not part of the VLAN number.
        let mut urgent = tagged;
        urgent[14] = 0xe0;
        assert_eq!(untag(&urgent), Some((7, frame())));
        for length in 0..16 {
            assert_eq!(untag(urgent.get(..length).expect("shorter")), None);
        }
    }

    #[test]
    fn a_port_hears_its_vlans_only() {
        let said = Said::default();
        assert_eq!(said.hear(frame(), 7), [frame()]);
        assert_eq!(said.bare.load(Ordering::SeqCst), 0, "before the first tag");
        assert!(said.hear(tag(&frame(), 8).expect("a frame"), 7).is_empty());
        assert_eq!(said.hear(tag(&frame(), 7).expect("a frame"), 7), [frame()]);
        assert_eq!(said.hear(frame(), 7), [frame()]);
        let counts = [&said.tagged, &said.bare].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [1, 1]);
    }
}
