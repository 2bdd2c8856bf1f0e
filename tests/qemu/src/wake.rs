//! The NICs of NUCs that are off: they read every frame on the rack's network and start their
//! machine when a frame contains its magic packet. The search does not depend on the carrier, as in
//! real NICs: EtherType 0x0842 and UDP both wake.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use stdx::MacAddr;

use crate::namespace::Namespace;
use crate::{BmcKind, Error, Nuc};

/// All protocols (`ETH_P_ALL` of `linux/if_ether.h`).
const ETH_P_ALL: u16 = 3;
/// Maximum bytes of a frame, with a VLAN tag.
const FRAME_MAX: usize = 1522;
/// Interval at which the listener looks for the end of the rack.
const TURN: Duration = Duration::from_millis(200);
/// Repetitions of the hardware address in a magic packet.
const REPETITIONS: usize = 16;

/// A running listener, ended when dropped.
#[derive(Debug)]
pub struct WakeListener {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WakeListener {
    /// Starts a listener on all interfaces of the rack's namespace; `None` for NUCs with a BMC.
    pub fn start(
        kind: BmcKind,
        rack: &Namespace,
        nucs: &[Arc<Nuc>],
    ) -> Result<Option<Self>, Error> {
        if kind != BmcKind::WakeOnLan {
            return Ok(None);
        }
        let nucs = nucs.to_vec();
        let socket = rack.enter(open)?.map_err(|errno| {
            Error::io("open a socket for magic packets".to_owned())(errno.into())
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut frame = [0; FRAME_MAX];
            while !stopped.load(Ordering::SeqCst) {
                // A timeout is the end of a turn.
                let Ok((length, _)) = recv(&socket, &mut frame, RecvFlags::empty()) else {
                    continue;
                };
                let frame = frame.get(..length).unwrap_or_default();
                let Some(mac) = magic(frame) else { continue };
                for nuc in nucs.iter().filter(|nuc| nuc.mac() == mac) {
                    if let Err(error) = nuc.wake() {
                        eprintln!("wake NUC {}: {}", nuc.number(), stdx::chain(&error));
                    }
                }
            }
        });
        Ok(Some(Self { stop, thread: Some(thread) }))
    }
}

impl Drop for WakeListener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn open() -> Result<OwnedFd, rustix::io::Errno> {
    let protocol = NonZeroU32::new(u32::from(ETH_P_ALL.to_be())).map(Protocol::from_raw);
    let (family, flags) = (AddressFamily::PACKET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::RAW, flags, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TURN))?;
    Ok(socket)
}

/// Returns the hardware address of the magic packet anywhere in a frame: six bytes FF, then the
/// address 16 times.
fn magic(frame: &[u8]) -> Option<MacAddr> {
    frame.windows(6 + 6 * REPETITIONS).find_map(|window| {
        let (ones, addresses) = window.split_at(6);
        let first: [u8; 6] = addresses.get(..6)?.try_into().ok()?;
        let is_magic = ones.iter().all(|byte| *byte == 0xFF)
            && first != [0xFF; 6]
            && addresses.chunks_exact(6).all(|chunk| chunk == first);
        is_magic.then_some(MacAddr(first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_magic_packet_is_found_anywhere_and_only_whole() {
        let mac = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
        let mut frame = vec![0x52, 0x54, 0, 0x77, 0, 1, 2, 2, 2, 2, 2, 2, 8, 0x42];
        frame.extend([0xFF; 6]);
        for _ in 0..REPETITIONS {
            frame.extend(mac.0);
        }
        assert_eq!(magic(&frame), Some(mac));
        frame.extend([1, 2, 3, 4]);
        assert_eq!(magic(&frame), Some(mac), "a password follows");
        let mut broken = frame.clone();
        broken[100] ^= 1;
        assert_eq!(magic(&broken), None);
        assert_eq!(magic(&frame[..100]), None);
        assert_eq!(magic(&[0xFF; 200]), None);
    }
}
