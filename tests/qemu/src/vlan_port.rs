//! A switch port with a native VLAN and a tagged one, with the box in both: frames without a tag
//! are the native VLAN's, as boot ROMs send them, and frames with the other's are its own.
//!
//! Bridges of many kernels know no VLANs, so the port is here: it takes the tag from what the NUC
//! says, and says everything to the NUC in both VLANs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;
use crate::splice::Splice;

/// Two addresses, before the tag.
const ADDRESSES: usize = 12;
/// IEEE 802.1Q: identifier and number.
const TAG: usize = 4;
const IDENTIFIER: [u8; 2] = [0x81, 0x00];
/// The bits of a tag that are the VLAN's number.
const NUMBER: u16 = 0x0fff;
const IPV4: [u8; 2] = [0x08, 0x00];

/// The port of one NUC.
#[derive(Debug)]
pub struct VlanPort {
    said: Arc<Said>,
    _splices: [Splice; 2],
}

/// What a NUC said.
#[derive(Debug, Default)]
struct Said {
    tagged: AtomicUsize,
    bare: AtomicUsize,
}

/// IPv4 packets that a NUC sent through its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTraffic {
    /// In the tagged VLAN.
    pub tagged: usize,
    /// In the native one, since the first in the other.
    pub bare_since: usize,
}

impl VlanPort {
    /// A port with VLAN `number` tagged; `up` and `down` are the places of what QEMU gives and gets
    /// back, from the NUC and to it.
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

    /// What the NUC sent until now.
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
            // A VLAN that the port is not in.
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

/// The frame in VLAN `number`; none of a frame too short to be one.
fn tag(frame: &[u8], number: u16) -> Option<Vec<u8>> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    Some([addresses, &IDENTIFIER, &number.to_be_bytes(), rest].concat())
}

/// The VLAN of a frame that has a tag, and the frame without.
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
        // Priority bits are not the number's.
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
