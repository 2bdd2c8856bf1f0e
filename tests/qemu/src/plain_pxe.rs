//! A NIC whose option ROM supports plain PXE only, as Intel's Boot Agent does.
//!
//! No such ROM is free software: QEMU's ROM is iPXE. A DHCP server recognizes iPXE by its options
//! 77 and 175, and sends a script instead of a loader. So until the ROM has requested its loader,
//! this filter removes the two options from the ROM's messages. The ROM does all the rest: DHCP,
//! TFTP, and the UNDI interface for the loader. The loader's packets pass unchanged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;
use crate::splice::Splice;

/// Length of the Ethernet header, and values of fields in a frame without VLAN tag.
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const UDP: u8 = 17;
const DHCP_SERVER: u16 = 67;
const TFTP: u16 = 69;
/// Offset of the options, after the magic cookie (RFC 2131 section 3).
const OPTIONS: usize = 240;
/// Codes of the two options that identify iPXE: user class (RFC 3004) and iPXE's encapsulated
/// options.
const SAYS_IPXE: [u8; 2] = [77, 175];

/// Packet filter for the ROM of one NUC.
#[derive(Debug)]
pub struct PlainPxe {
    loaded: Arc<AtomicBool>,
    _splice: Splice,
}

impl PlainPxe {
    /// Starts the filter, which reads the packets of each QEMU of this NUC on the first socket and
    /// returns them on the second.
    pub fn start(said: &Path, told: &Path) -> Result<Self, Error> {
        let loaded = Arc::new(AtomicBool::new(false));
        let there = Arc::clone(&loaded);
        let splice = Splice::start(said, told, move |mut frame| {
            match target(&frame) {
                Some((TFTP, _)) => there.store(true, Ordering::SeqCst),
                Some((DHCP_SERVER, udp)) if !there.load(Ordering::SeqCst) => {
                    make_plain(frame.get_mut(udp..).unwrap_or_default());
                }
                _ => {}
            }
            vec![frame]
        })?;
        Ok(Self { loaded, _splice: splice })
    }

    /// Resets the filter: after a reset of the machine the ROM runs again.
    pub fn reset(&self) {
        self.loaded.store(false, Ordering::SeqCst);
    }
}

/// UDP destination port and offset of the UDP header; `None` for any other packet than UDP over
/// IPv4.
fn target(frame: &[u8]) -> Option<(u16, usize)> {
    let packet = frame.get(ETHERNET..).filter(|_| frame.get(12..14) == Some(&IPV4))?;
    if *packet.get(9)? != UDP {
        return None;
    }
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let port = packet.get(header + 2..header + 4)?;
    Some((u16::from_be_bytes(port.try_into().ok()?), ETHERNET + header))
}

/// Removes [`SAYS_IPXE`] from a DHCP message in its UDP datagram. The length of the message stays:
/// zeros fill the space after the end option (RFC 2132 section 3.1).
fn make_plain(udp: &mut [u8]) {
    // Zero means no checksum (RFC 768).
    if let Some(checksum) = udp.get_mut(6..8) {
        checksum.fill(0);
    }
    let Some(options) = udp.get_mut(8 + OPTIONS..) else { return };
    let mut kept = Vec::with_capacity(options.len());
    let mut rest: &[u8] = options;
    while let [code, tail @ ..] = rest {
        let length = match (code, tail) {
            (0, _) => 0,
            (255, _) | (_, []) => break,
            (_, [length, ..]) => 1 + usize::from(*length),
        };
        let Some((whole, after)) = rest.split_at_checked(1 + length) else { break };
        if !SAYS_IPXE.contains(code) {
            kept.extend(whole);
        }
        rest = after;
    }
    kept.push(255);
    kept.resize(options.len(), 0);
    options.copy_from_slice(&kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(options: &[u8]) -> Vec<u8> {
        let mut udp = vec![0, 68, 0, 67, 0, 0, 0xab, 0xcd];
        udp.resize(8 + OPTIONS, 1);
        udp.extend(options);
        udp
    }

    #[test]
    fn only_ipxe_s_own_options_go() {
        let mut udp = datagram(b"\x35\x01\x01\x4d\x04iPXE\x00\xaf\x03\xb1\x01\x02\x3d\x01\x09\xff");
        let before = udp.len();
        make_plain(&mut udp);
        assert_eq!(udp.len(), before);
        assert_eq!(udp.get(6..8), Some(&[0, 0][..]), "no checksum");
        let options = udp.get(8 + OPTIONS..).expect("options");
        assert!(options.starts_with(b"\x35\x01\x01\x00\x3d\x01\x09\xff"), "{options:02x?}");
        assert!(options.get(8..).expect("padding").iter().all(|byte| *byte == 0));
    }

    #[test]
    fn every_truncation_is_borne() {
        let whole = datagram(b"\x35\x01\x01\x4d\x04iPXE\xff");
        for length in 0..=whole.len() {
            let mut cut = whole.get(..length).expect("shorter").to_vec();
            make_plain(&mut cut);
            assert_eq!(cut.len(), length);
        }
    }

    #[test]
    fn a_frame_s_target_is_read() {
        let mut frame = vec![0; ETHERNET];
        frame.splice(12..14, IPV4);
        frame.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, UDP]);
        frame.resize(ETHERNET + 20, 0);
        frame.extend([0, 68, 0, 67]);
        assert_eq!(target(&frame), Some((67, ETHERNET + 20)));
        for length in 0..frame.len() {
            assert_eq!(target(frame.get(..length).expect("shorter")), None);
        }
    }
}
