//! A network card whose option ROM speaks plain PXE, as Intel's Boot Agent does.
//!
//! No such ROM is free software: the one QEMU brings is iPXE, which a DHCP server knows by its
//! options 77 and 175 and sends a script instead of a loader. So until the ROM has asked for its
//! loader, what it says passes through here (QEMU's `filter-redirector`: each frame behind its
//! length as big-endian 32 bits) and loses the two options. Everything else is the ROM's own work:
//! DHCP, TFTP, the UNDI interface it gives the loader. The loader's words pass untouched.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::Error;

/// QEMU's own limit of a frame (`NET_BUFSIZE`) is 68 KiB and some.
const MAX_FRAME: usize = 1 << 17;
/// Ethernet's header and what follows: offsets in a frame without VLAN tag.
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const UDP: u8 = 17;
const DHCP_SERVER: u16 = 67;
const TFTP: u16 = 69;
/// RFC 2131 section 3: the magic cookie's end.
const OPTIONS: usize = 240;
/// User class (RFC 3004) and iPXE's encapsulated options: both say iPXE.
const SAYS_IPXE: [u8; 2] = [77, 175];

/// The ROM of one NUC.
#[derive(Debug)]
pub struct PlainPxe {
    said: PathBuf,
    loaded: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PlainPxe {
    /// Listens on `said` and `told`, where every QEMU of this NUC will connect to at its start.
    pub fn start(said: &Path, told: &Path) -> Result<Self, Error> {
        let listen = |path: &Path| UnixListener::bind(path).map_err(Error::path("listen on", path));
        let (from, to) = (listen(said)?, listen(told)?);
        let (loaded, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (loaded_there, ended_there) = (Arc::clone(&loaded), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            while let Ok((from, _)) = from.accept() {
                if ended_there.load(Ordering::SeqCst) {
                    break;
                }
                let Ok((to, _)) = to.accept() else { break };
                // The pair ends with its QEMU, and the next QEMU brings the next.
                let _ = carry(from, to, &loaded_there);
            }
        });
        Ok(Self { said: said.to_owned(), loaded, ended, thread: Some(thread) })
    }

    /// The machine was reset: the ROM speaks again.
    pub fn reset(&self) {
        self.loaded.store(false, Ordering::SeqCst);
    }
}

impl Drop for PlainPxe {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        drop(UnixStream::connect(&self.said));
        if let Some(thread) = self.thread.take() {
            // It has nothing to say; its sockets end with it.
            let _ = thread.join();
        }
    }
}

fn carry(from: UnixStream, mut to: UnixStream, loaded: &AtomicBool) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let size = u32::from_be_bytes(length) as usize;
        if size > MAX_FRAME {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let mut message = length.to_vec();
        message.resize(4 + size, 0);
        let frame = message.get_mut(4..).unwrap_or_default();
        from.read_exact(frame)?;
        match target(frame) {
            Some((TFTP, _)) => loaded.store(true, Ordering::SeqCst),
            Some((DHCP_SERVER, udp)) if !loaded.load(Ordering::SeqCst) => {
                make_plain(frame.get_mut(udp..).unwrap_or_default());
            }
            _ => {}
        }
        to.write_all(&message)?;
    }
}

/// UDP's target port and where its header begins; `None` for anything but UDP over IPv4.
fn target(frame: &[u8]) -> Option<(u16, usize)> {
    let packet = frame.get(ETHERNET..).filter(|_| frame.get(12..14) == Some(&IPV4))?;
    if *packet.get(9)? != UDP {
        return None;
    }
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let port = packet.get(header + 2..header + 4)?;
    Some((u16::from_be_bytes(port.try_into().ok()?), ETHERNET + header))
}

/// Takes [`SAYS_IPXE`] out of a DHCP message in its UDP datagram. The lengths stay: zeros fill up
/// behind the end (RFC 2132 section 3.1).
fn make_plain(udp: &mut [u8]) {
    // Zero: no checksum (RFC 768).
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
