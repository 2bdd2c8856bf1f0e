//! The NICs of NUCs that are off: they read every frame on the rack's network and start their
//! machine when a frame contains its magic packet. The search does not depend on the carrier, as in
//! real NICs: EtherType 0x0842 and UDP both wake.

use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use smoltcp::phy::{Device as _, Medium, RawSocket, RxToken as _, wait};
use smoltcp::time::Instant;
use stdx::MacAddr;

use crate::config::Segment;
use crate::namespace::Namespace;
use crate::{BmcKind, Error, Nuc};

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
    /// Starts a listener on the box's segment; `None` for NUCs with a BMC.
    pub fn start(
        kind: BmcKind,
        rack: &Namespace,
        nucs: &[Arc<Nuc>],
    ) -> Result<Option<Self>, Error> {
        if kind != BmcKind::WakeOnLan {
            return Ok(None);
        }
        let bridge = Segment::Near.bridge();
        // Of the bridge alone, which then reads every frame once. A socket of all interfaces reads
        // a frame once at each port that it crosses, and a late copy wakes a NUC a second time.
        rack.ip(&format!("link set {bridge} promisc on\n"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (rack, nucs, stopped) = (rack.clone(), nucs.to_vec(), Arc::clone(&stop));
        let (opened, is_open) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            // An error is the error of `open`, which is received below.
            let _ = rack.enter(|| listen(bridge, &opened, &nucs, &stopped));
        });
        let listener = Self { stop, thread: Some(thread) };
        let error = Error::io("open a socket for magic packets".to_owned());
        match is_open.recv() {
            Ok(Ok(())) => Ok(Some(listener)),
            Ok(Err(cause)) => Err(error(cause)),
            Err(_) => Err(error(std::io::Error::other("its thread ended"))),
        }
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

/// Wakes NUCs until `stopped`. Sends to `opened` whether the socket could be opened.
fn listen(
    bridge: &str,
    opened: &SyncSender<std::io::Result<()>>,
    nucs: &[Arc<Nuc>],
    stopped: &AtomicBool,
) {
    let mut socket = match RawSocket::new(bridge, Medium::Ethernet) {
        Ok(socket) => socket,
        Err(error) => return opened.send(Err(error)).unwrap_or_default(),
    };
    let _ = opened.send(Ok(()));
    while !stopped.load(Ordering::SeqCst) {
        let Some((frame, _)) = socket.receive(Instant::now()) else {
            let _ = wait(socket.as_raw_fd(), Some(TURN.into()));
            continue;
        };
        let Some(mac) = frame.consume(magic) else { continue };
        for nuc in nucs.iter().filter(|nuc| nuc.mac() == mac) {
            if let Err(error) = nuc.wake() {
                eprintln!("wake NUC {}: {}", nuc.number(), stdx::chain(&error));
            }
        }
    }
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
