//! A filter on a NUC's cable, through which every frame of one direction passes (QEMU's
//! `filter-redirector`: each frame after its length as big-endian 32 bits).

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread::JoinHandle;

use crate::Error;

/// Maximum bytes of a frame; QEMU's own limit (`NET_BUFSIZE`) is a little over 68 KiB.
const MAX_FRAME: usize = 1 << 17;
/// Maximum number of frames that wait until QEMU reads them; further frames are dropped.
const QUEUE: usize = 4096;

/// Receives frames, and forwards the result of a function for each.
#[derive(Debug)]
pub struct Splice {
    taken: PathBuf,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Splice {
    /// Listens on the two sockets to which each QEMU of this NUC connects at its start: `taken` for
    /// frames from QEMU, `given` for frames to QEMU. For each frame, `pass` returns the frames to
    /// forward: none, the same frame, another frame, or several.
    pub fn start(
        taken: &Path,
        given: &Path,
        pass: impl Fn(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Result<Self, Error> {
        let listen = |path: &Path| UnixListener::bind(path).map_err(Error::path("listen on", path));
        let (from, to) = (listen(taken)?, listen(given)?);
        let ended = Arc::new(AtomicBool::new(false));
        let ended_there = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while let Ok((from, _)) = from.accept() {
                if ended_there.load(Ordering::SeqCst) {
                    break;
                }
                let Ok((to, _)) = to.accept() else { break };
                // The two connections end with their QEMU, and the next QEMU opens new ones.
                let _ = carry(from, to, &pass);
            }
        });
        Ok(Self { taken: taken.to_owned(), ended, thread: Some(thread) })
    }
}

impl Drop for Splice {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        drop(UnixStream::connect(&self.taken));
        if let Some(thread) = self.thread.take() {
            // The thread returns no value; its sockets are closed with it.
            let _ = thread.join();
        }
    }
}

/// Forwards frames with two threads: QEMU does not read while it writes, so one thread that waits
/// for a write would block QEMU.
fn carry(
    from: UnixStream,
    mut to: UnixStream,
    pass: &impl Fn(Vec<u8>) -> Vec<Vec<u8>>,
) -> io::Result<()> {
    let (queue, queued) = sync_channel::<Vec<u8>>(QUEUE);
    // The closure owns the sender and drops it when the closure ends. The other thread then ends
    // too.
    std::thread::scope(move |scope| {
        scope.spawn(move || queued.iter().try_for_each(|message| to.write_all(&message)));
        let mut from = BufReader::new(from);
        loop {
            let mut length = [0; 4];
            from.read_exact(&mut length)?;
            let size = u32::from_be_bytes(length) as usize;
            if size > MAX_FRAME {
                return Err(io::Error::from(io::ErrorKind::InvalidData));
            }
            let mut frame = vec![0; size];
            from.read_exact(&mut frame)?;
            for frame in pass(frame) {
                let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
                let message = [&length.to_be_bytes(), &frame[..]].concat();
                // A full queue drops frames, as the port of a real switch does.
                if let Err(TrySendError::Disconnected(_)) = queue.try_send(message) {
                    return Ok(());
                }
            }
        }
    })
}
