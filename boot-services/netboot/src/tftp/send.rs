//! Sends blocks, and copies their bytes only where a machine's patch changes them. If the kernel
//! splits data into datagrams (`UDP_SEGMENT`, Linux 4.18), one system call sends a whole window.
//! Otherwise each datagram takes one call.

use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use socket2::{MsgHdr, SockAddr, SockRef};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::content::Content;
use super::packet::data_head;

/// Maximum datagrams in one call: the kernel's limit before Linux 6.9 (`UDP_MAX_SEGMENTS`).
const MAX_SEGMENTS: usize = 64;
/// Maximum bytes in one call: the payload of an IPv4 packet after the IP and UDP headers.
const MAX_BYTES: usize = 65_507;
/// Bytes of a DATA packet before the payload.
const HEAD: usize = 4;

/// Range of blocks to send, and the content that has them.
pub(super) struct Blocks<'a> {
    pub(super) content: &'a Content,
    pub(super) blksize: u16,
    pub(super) numbers: RangeInclusive<u64>,
}

/// Sending side of the server's socket.
pub(super) struct Sender {
    /// False once the kernel has refused to split a window: each datagram then takes one call.
    cuts: bool,
}

impl Sender {
    /// Creates a sender. If `cuts` is true, the kernel splits windows until it refuses to split.
    pub(super) fn new(cuts: bool) -> Self {
        Self { cuts }
    }

    /// Sends one datagram. A failure counts as a lost packet; the session's timer repeats it.
    pub(super) async fn packet(&self, socket: &UdpSocket, to: SocketAddr, bytes: &[u8]) {
        if let Err(error) = socket.send_to(bytes, to).await {
            tracing::debug!(%to, %error, "a TFTP packet could not be sent");
        }
    }

    /// Sends blocks as DATA packets.
    pub(super) async fn blocks(&mut self, socket: &UdpSocket, to: SocketAddr, blocks: Blocks<'_>) {
        let size = usize::from(blocks.blksize) + HEAD;
        let fitting = (MAX_BYTES / size).clamp(1, MAX_SEGMENTS) as u64;
        let mut together = if self.cuts { fitting } else { 1 };
        let (mut next, end) = (*blocks.numbers.start(), *blocks.numbers.end());
        let address = SockAddr::from(to);
        while next <= end {
            let count = together.min(end - next + 1);
            match blocks.send(socket, &address, next, count).await {
                Ok(()) => next += count,
                // The path is too narrow for the block size, or the kernel does not split. Single
                // datagrams may still be accepted.
                Err(error) if count > 1 => {
                    together = 1;
                    if never_cuts(&error) {
                        tracing::info!(%error, "the kernel does not support UDP segmentation");
                        self.cuts = false;
                    }
                }
                Err(error) => {
                    tracing::debug!(%to, %error, "a TFTP packet could not be sent");
                    next += 1;
                }
            }
        }
    }
}

/// Returns true if an error shows that the kernel or the network device cannot split windows, and
/// not that one client has failed. Causes are a device without checksum offload (before Linux
/// 6.11), or a kernel built without UDP_SEGMENT.
fn never_cuts(error: &io::Error) -> bool {
    let code = error.raw_os_error().unwrap_or(0);
    [libc::EIO, libc::EOPNOTSUPP, libc::ENOPROTOOPT].contains(&code)
}

impl Blocks<'_> {
    /// Sends `count` blocks from `first` in one call.
    async fn send(
        &self,
        socket: &UdpSocket,
        to: &SockAddr,
        first: u64,
        count: u64,
    ) -> io::Result<()> {
        let numbers = first..first + count;
        let heads: Vec<[u8; HEAD]> = numbers.clone().map(data_head).collect();
        let payloads: Vec<Cow<'_, [u8]>> = numbers.map(|number| self.payload(number)).collect();
        let mut parts = Vec::with_capacity(heads.len() * 2);
        for (head, payload) in heads.iter().zip(&payloads) {
            parts.push(IoSlice::new(head));
            parts.push(IoSlice::new(payload));
        }
        let control = segment_size(self.blksize + HEAD as u16);
        let send = || {
            let message = MsgHdr::new().with_addr(to).with_buffers(&parts);
            let message = if count > 1 { message.with_control(&control) } else { message };
            SockRef::from(socket).sendmsg(&message, 0)
        };
        socket.async_io(Interest::WRITABLE, send).await.map(drop)
    }

    /// Returns the bytes of one block; empty after the last block.
    fn payload(&self, number: u64) -> Cow<'_, [u8]> {
        let offset = number.saturating_sub(1).saturating_mul(self.blksize.into());
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.content.size());
        let end = (start + usize::from(self.blksize)).min(self.content.size());
        self.content.part(start..end)
    }
}

/// Returns a control message (cmsg(3)) with which the kernel splits the data every `size` bytes.
fn segment_size(size: u16) -> [u8; 3 * size_of::<usize>()] {
    const WORD: usize = size_of::<usize>();
    // Total length, level and type as two ints, the value, padding to a word.
    const VALUE: usize = WORD + 2 * size_of::<i32>();
    let mut control = [0; 3 * WORD];
    control[..WORD].copy_from_slice(&(VALUE + size_of::<u16>()).to_ne_bytes());
    control[WORD..WORD + 4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    control[WORD + 4..VALUE].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    control[VALUE..VALUE + 2].copy_from_slice(&size.to_ne_bytes());
    control
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Blocks, Content, Sender};
    use crate::tftp::packet::Packet;
    use tokio::net::UdpSocket;

    /// Sends `count` blocks of `content`, from the first, and returns the received packets.
    async fn arrivals(cuts: bool, content: &[u8], blksize: u16, count: u64) -> Vec<(u16, Vec<u8>)> {
        let ours = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let theirs = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = theirs.local_addr().unwrap();
        let mut sender = Sender::new(cuts);
        let content = &Content::from(Arc::from(content));
        sender.blocks(&ours, to, Blocks { content, blksize, numbers: 1..=count }).await;
        assert_eq!(sender.cuts, cuts, "this kernel cuts windows on loopback");
        let mut datagram = vec![0; 65_536];
        let mut arrived = Vec::new();
        for _ in 0..count {
            let length = theirs.recv(&mut datagram).await.unwrap();
            match Packet::parse(&datagram[..length]).unwrap() {
                Packet::Data { block, payload } => arrived.push((block, payload.to_vec())),
                other => panic!("{other:?}"),
            }
        }
        arrived
    }

    #[tokio::test]
    async fn a_window_arrives_as_its_blocks_however_it_is_sent() {
        let content: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        for (blksize, count) in [(1468, 1), (1468, 8), (1468, 64), (512, 64), (8, 64), (1468, 69)] {
            let together = arrivals(true, &content, blksize, count).await;
            assert_eq!(together, arrivals(false, &content, blksize, count).await);
            let mut joined = Vec::new();
            for (number, (block, payload)) in (1_u16..).zip(together) {
                assert_eq!(block, number);
                joined.extend(payload);
            }
            assert!(content.starts_with(&joined), "{blksize} {count}");
            let all = usize::from(blksize) * usize::try_from(count).unwrap();
            assert_eq!(joined.len(), all.min(content.len()));
        }
        // The last block of a file that fills its blocks is empty, and is sent too.
        let last = arrivals(true, &content[..1024], 512, 3).await.pop();
        assert_eq!(last, Some((3, Vec::new())));
    }

    #[tokio::test]
    async fn a_client_that_cannot_be_sent_to_changes_nothing_for_others() {
        let ours = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let nowhere = "127.0.0.1:0".parse().unwrap();
        let mut sender = Sender::new(true);
        let content = &Content::from(Arc::from([7; 4000]));
        let blocks = Blocks { content, blksize: 1000, numbers: 1..=5 };
        sender.blocks(&ours, nowhere, blocks).await;
        assert!(sender.cuts);
        let refused = std::io::Error::from_raw_os_error(libc::EIO);
        assert!(super::never_cuts(&refused));
    }
}
