//! TFTP client of a boot ROM: requests the size first if its firmware does, and acknowledges
//! windows.

use std::fmt;

use netboot::tftp::packet::{Options, Packet};

use crate::clock::{MILLI, Moment, SECOND};
use crate::machine::boot::Step;
use crate::machine::{Firmware, Turn};

/// Maximum number of consecutive timeouts; at the next timeout, a ROM gives up.
const TRIES: u32 = 6;
/// Error code 8, which EDK2 sends once it has learned the size.
const SIZE_KNOWN: &[u8] = b"\0\x05\0\x08User aborted download\0";

/// State of one TFTP download.
#[derive(Debug)]
pub struct Download {
    port: u16,
    file: String,
    firmware: Firmware,
    /// True until the request for the size (`tsize`) is answered.
    sizing: bool,
    /// Options of the OACK; `None` until the first answer.
    granted: Option<Options>,
    /// Number of the next block, which does not wrap at 65536.
    next: u64,
    /// Bytes received so far.
    received: u64,
    /// Blocks since the last acknowledgement.
    unacked: u64,
    /// True if a gap was reported and no new block came since.
    complained: bool,
    tries: u32,
}

impl Download {
    /// A download, and its first datagram.
    pub fn start(file: String, firmware: Firmware, turn: &mut Turn<'_>) -> (Self, Vec<u8>) {
        let download = Self {
            port: turn.rng.u16(1024..),
            file,
            firmware,
            sizing: firmware == Firmware::Edk2Pxe,
            granted: None,
            next: 1,
            received: 0,
            unacked: 0,
            complained: false,
            tries: 0,
        };
        let request = download.request();
        (download, request)
    }

    /// UDP port of the client.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Retransmission timeout of the client.
    pub fn patience(&self) -> Moment {
        if self.firmware == Firmware::Edk2Pxe { 4 * SECOND } else { 1_500 * MILLI }
    }

    /// Handles any packet but a block.
    pub fn packet(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> Step {
        match Packet::parse(bytes) {
            Ok(Packet::OptionAck(_)) if self.sizing => {
                let old = self.port;
                *self = Self { sizing: false, ..Self::start(self.again(), self.firmware, turn).0 };
                Step::Send(vec![(old, SIZE_KNOWN.to_vec()), (self.port, self.request())])
            }
            Ok(Packet::OptionAck(options)) if self.next == 1 => {
                self.granted = Some(options);
                Step::Send(vec![(self.port, ack(0))])
            }
            Ok(Packet::Error { .. }) => Step::Failed,
            _ => Step::Wait,
        }
    }

    /// Handles a data block, given without its bytes.
    pub fn block(&mut self, number: u16, at: u64, length: u64) -> Step {
        let Some(granted) = self.granted.filter(|_| !self.sizing) else { return Step::Wait };
        let (blksize, window) =
            (u64::from(granted.blksize.unwrap_or(512)), u64::from(granted.windowsize.unwrap_or(1)));
        if number != low_bits(self.next) {
            // One message for each gap; with a window of one, each copy is acknowledged again.
            if self.complained && window > 1 {
                return Step::Wait;
            }
            (self.complained, self.unacked) = (true, 0);
            return Step::Send(vec![(self.port, ack(self.next - 1))]);
        }
        assert_eq!(at, self.received, "block {} of {} is of another place", self.next, self.file);
        self.received += length;
        self.next += 1;
        self.unacked += 1;
        (self.complained, self.tries) = (false, 0);
        let acked = ack(self.next - 1);
        if length < blksize {
            if let Some(size) = granted.tsize {
                assert_eq!(self.received, size, "{} is not whole", self.file);
            }
            return Step::Complete(acked);
        }
        if self.unacked < window {
            return Step::Progress;
        }
        self.unacked = 0;
        Step::Send(vec![(self.port, acked)])
    }

    /// Handles a timeout: no new block came for [`Self::patience`].
    pub fn timer(&mut self) -> Step {
        self.tries += 1;
        (self.complained, self.unacked) = (false, 0);
        if self.tries > TRIES {
            return Step::Failed;
        }
        let again = if self.granted.is_some() { ack(self.next - 1) } else { self.request() };
        Step::Send(vec![(self.port, again)])
    }

    fn again(&self) -> String {
        self.file.clone()
    }

    /// The request, byte for byte as recorded.
    fn request(&self) -> Vec<u8> {
        let options: &[u8] = match (self.firmware, self.sizing) {
            (Firmware::Edk2Pxe, true) => b"tsize\x000\0blksize\x001468\0windowsize\x004\0",
            (Firmware::Edk2Pxe, false) => b"blksize\x001468\0windowsize\x004\0",
            _ => b"blksize\x001432\0tsize\x000\0",
        };
        [b"\0\x01", self.file.as_bytes(), b"\0octet\0", options].concat()
    }
}

impl fmt::Display for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} block {}", self.file, self.next)
    }
}

fn ack(block: u64) -> Vec<u8> {
    [&4_u16.to_be_bytes()[..], &low_bits(block).to_be_bytes()].concat()
}

fn low_bits(block: u64) -> u16 {
    (block & 0xffff) as u16
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::{Download, Step, ack};
    use crate::machine::{Firmware, Turn};

    fn download(granted: &[u8]) -> Download {
        let (mut rng, mut acts) = (Rng::with_seed(1), Vec::new());
        let mut turn = Turn { now: 0, rng: &mut rng, acts: &mut acts };
        let (mut download, _) = Download::start("a".into(), Firmware::BiosPxe, &mut turn);
        let step = download.packet(granted, &mut turn);
        assert_eq!(step, Step::Send(vec![(download.port, ack(0))]));
        download
    }

    #[test]
    fn windows_are_acknowledged_and_gaps_told_of_once() {
        let mut download = download(b"\0\x06blksize\x0010\0windowsize\x002\0");
        let port = download.port;
        let send = |block| Step::Send(vec![(port, ack(block))]);
        assert_eq!(download.block(1, 0, 10), Step::Progress);
        assert_eq!(download.block(2, 10, 10), send(2));
        assert_eq!(download.block(4, 30, 10), send(2));
        assert_eq!(download.block(5, 40, 10), Step::Wait);
        assert_eq!(download.block(3, 20, 10), Step::Progress);
        assert_eq!(download.block(4, 30, 3), Step::Complete(ack(4)));
        assert_eq!(download.received, 33);
    }

    #[test]
    #[should_panic(expected = "is of another place")]
    fn a_block_of_another_place_is_noticed() {
        download(b"\0\x06blksize\x0010\0").block(1, 10, 10);
    }

    #[test]
    #[should_panic(expected = "is not whole")]
    fn a_short_file_is_noticed() {
        download(b"\0\x06blksize\x0010\0tsize\x0099\0").block(1, 0, 5);
    }
}
