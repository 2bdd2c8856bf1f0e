//! A place on a NUC's cable where every frame of one direction passes through the harness (QEMU's
//! `filter-redirector`: each frame behind its length as big-endian 32 bits).

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread::JoinHandle;

use crate::Error;

/// QEMU's own limit of a frame (`NET_BUFSIZE`) is 68 KiB and some.
const MAX_FRAME: usize = 1 << 17;
/// Frames that wait for QEMU to take them.
const QUEUE: usize = 4096;

/// Takes frames and lets go on what it makes of them.
#[derive(Debug)]
pub struct Splice {
    taken: PathBuf,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Splice {
    /// Listens where every QEMU of this NUC connects to at its start: at `taken` for the frames it
    /// gives, at `given` for those it gets back. `pass` says what becomes of one: nothing, itself,
    /// another, several.
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
                // The pair ends with its QEMU, and the next QEMU brings the next.
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
            // It has nothing to say; its sockets end with it.
            let _ = thread.join();
        }
    }
}

/// Two threads: QEMU takes nothing while it gives, so one that waited for it to take would stop it.
fn carry(
    from: UnixStream,
    mut to: UnixStream,
    pass: &impl Fn(Vec<u8>) -> Vec<Vec<u8>>,
) -> io::Result<()> {
    let (queue, queued) = sync_channel::<Vec<u8>>(QUEUE);
    // Its own: the queue ends with it, and so does who takes from the queue.
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
                // A port whose queue is full drops, as every switch's does.
                if let Err(TrySendError::Disconnected(_)) = queue.try_send(message) {
                    return Ok(());
                }
            }
        }
    })
}
