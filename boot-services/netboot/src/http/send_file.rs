//! Sends a part of a file on a connection. Plain TCP uses sendfile(2), so that the bytes never
//! enter this process. TLS must encrypt the bytes, which pass through one buffer.
//!
//! Data in the page cache is sent from the thread of the connection. Data that must be read from
//! the disk is read on a thread for blocking work.

use std::fs::File;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Advice, fadvise, sendfile};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::net::{SendFlags, send};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Time in which a client must take some bytes of a response; otherwise the connection ends.
pub(super) const STALL: Duration = Duration::from_secs(60);
/// Maximum bytes of one sendfile call, so that one fast client does not occupy a thread.
const SENDFILE_MAX: u64 = 2 << 20;
/// Bytes that are read at a time if sendfile is not used. Each connection holds one such buffer.
const CHUNK: usize = 64 << 10;
/// Maximum size in bytes of a body that is sent together with its head.
const SMALL: u64 = 16 << 10;

/// Connection on which files can be sent.
pub(super) trait SendFile: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Sends a head, and then a nonempty part of a file. `sent` counts the part's bytes during
    /// sending, so the count is right after an error too.
    fn send(
        &mut self,
        head: Vec<u8>,
        file: File,
        part: Range<u64>,
        sent: &mut u64,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

impl SendFile for TcpStream {
    async fn send(
        &mut self,
        mut head: Vec<u8>,
        file: File,
        part: Range<u64>,
        sent: &mut u64,
    ) -> io::Result<()> {
        let file = Arc::new(file);
        let length = part.end - part.start;
        if length <= SMALL {
            let front = head.len();
            head.resize(front + length as usize, 0);
            read_exact(&file, &mut head[front..], part.start).await?;
            unstalled(self.write_all(&head)).await?;
            *sent = length;
            return Ok(());
        }
        announce(self, &head).await?;
        let mut offset = part.start;
        while offset < part.end {
            let count = (part.end - offset).min(SENDFILE_MAX);
            warm(&file, offset..offset + count).await?;
            // A part has at most SENDFILE_MAX bytes, which fits every usize.
            let call = || Ok(sendfile(&*self, &*file, Some(&mut offset), count as usize)?);
            let taken = unstalled(self.async_io(Interest::WRITABLE, call)).await?;
            if taken == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            *sent = offset - part.start;
        }
        Ok(())
    }
}

impl SendFile for TlsStream<TcpStream> {
    async fn send(
        &mut self,
        head: Vec<u8>,
        file: File,
        part: Range<u64>,
        sent: &mut u64,
    ) -> io::Result<()> {
        let file = Arc::new(file);
        // The head leaves with the first bytes of the file. Afterwards the whole buffer is for the
        // file.
        let mut buffer = head;
        let mut front = buffer.len();
        let room = (part.end - part.start).min(CHUNK as u64) as usize;
        buffer.resize(front + room, 0);
        let mut offset = part.start;
        while offset < part.end {
            let left = usize::try_from(part.end - offset).unwrap_or(usize::MAX);
            let end = buffer.len().min(front.saturating_add(left));
            let read = read(&file, &mut buffer[front..end], offset).await?;
            unstalled(self.write_all(&buffer[..front + read])).await?;
            offset += read as u64;
            *sent = offset - part.start;
            front = 0;
        }
        unstalled(self.flush()).await
    }
}

/// Sends a head before its body, so that both may share a TCP segment.
async fn announce(stream: &TcpStream, mut head: &[u8]) -> io::Result<()> {
    while !head.is_empty() {
        let call = || Ok(send(stream, head, SendFlags::MORE | SendFlags::NOSIGNAL)?);
        let taken = unstalled(stream.async_io(Interest::WRITABLE, call)).await?;
        head = &head[taken..];
    }
    Ok(())
}

/// Runs one step of a response; fails if the client takes no bytes for [`STALL`].
pub(super) async fn unstalled<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(STALL, step).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Loads a part of a file into the page cache, unless its last byte is already there. The last byte
/// is enough, because the disk is read forward.
async fn warm(file: &Arc<File>, part: Range<u64>) -> io::Result<()> {
    match peek(file, &mut [0], part.end - 1) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        _ => return Ok(()),
    }
    let file = Arc::clone(file);
    waiting(move || {
        let length = std::num::NonZeroU64::new(part.end - part.start);
        fadvise(&*file, part.start, length, Advice::WillNeed)?;
        let mut scratch = vec![0; CHUNK];
        let mut offset = part.start;
        while offset < part.end {
            match file.read_at(&mut scratch, offset)? {
                0 => break,
                read => offset += read as u64,
            }
        }
        Ok(())
    })
    .await
}

/// Reads some bytes of a file. An empty read is an error: the file became shorter.
async fn read(file: &Arc<File>, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let read = match peek(file, into, offset) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let (file, length) = (Arc::clone(file), into.len());
            let bytes = waiting(move || {
                let mut bytes = vec![0; length];
                let read = file.read_at(&mut bytes, offset)?;
                bytes.truncate(read);
                Ok(bytes)
            });
            let bytes = bytes.await?;
            into[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }
        read => read?,
    };
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

async fn read_exact(file: &Arc<File>, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !into.is_empty() {
        let taken = read(file, into, offset).await?;
        into = &mut into[taken..];
        offset += taken as u64;
    }
    Ok(())
}

/// Reads from the page cache only; fails with [`io::ErrorKind::WouldBlock`] if the disk must be
/// read. A file system that does not support this (tmpfs, overlayfs) is read directly.
fn peek(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    match preadv2(file, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP) => file.read_at(into, offset),
        read => Ok(read?),
    }
}

/// Runs work that may block on the disk in a thread for blocking work.
async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
