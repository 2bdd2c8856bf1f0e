//! All transfers of one port, without the socket: datagrams, loaded files and the clock in,
//! [`Output`]s out.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::content::Content;
use super::packet::{Code, Options, Packet, error};
use super::session::{Session, Step};
use crate::seen::shortened;
use crate::{Fetched, Outcome};

/// Transfers at once.
pub const MAX_TRANSFERS: usize = 512;
/// Transfers at once of one address: a machine runs one, a simulated rack behind one address more.
const MAX_PER_PEER: usize = 64;
/// The same request from the same port within this time is the network's copy, not a new wish.
const COPY_WINDOW: Duration = Duration::from_secs(1);

/// What the socket's owner has to do.
pub enum Output {
    /// Send this datagram.
    Packet {
        /// The client.
        to: SocketAddr,
        /// The whole payload.
        bytes: Vec<u8>,
    },
    /// Send these blocks of `content` as DATA packets.
    Blocks {
        /// The client.
        to: SocketAddr,
        /// The whole file.
        content: Content,
        /// Bytes in every block but the last.
        blksize: u16,
        /// Their numbers, from 1, not yet modulo 65536.
        blocks: RangeInclusive<u64>,
    },
    /// Find this file and answer with [`Transfers::loaded`].
    Load {
        /// The client.
        peer: SocketAddr,
        /// To be given back with the answer.
        ticket: u64,
        /// The name as it was asked for.
        file: String,
    },
    /// Tell the observer.
    Ended(Fetched),
}

struct Transfer {
    /// Tells a load's answer from that of an earlier request of the same peer.
    ticket: u64,
    file: String,
    options: Options,
    started: Instant,
    running: Option<(Session, Content)>,
}

/// The table of transfers, by the client's address and port.
#[derive(Default)]
pub struct Transfers {
    table: HashMap<SocketAddr, Transfer>,
    outputs: VecDeque<Output>,
    tickets: u64,
    /// No transfer's timer is due before this; a lower bound, made exact by [`Transfers::timer`].
    due: Option<Instant>,
}

impl Transfers {
    /// The next thing to do.
    pub fn output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Transfers::timer`].
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// How many there are, at most [`MAX_TRANSFERS`].
    pub fn count(&self) -> usize {
        self.table.len()
    }

    /// A datagram arrived.
    pub fn datagram(&mut self, peer: SocketAddr, bytes: &[u8], now: Instant) {
        match Packet::parse(bytes) {
            Ok(Packet::Read(request)) if request.octet => {
                self.request(peer, request.file, request.options, now);
            }
            Ok(Packet::Read(request)) => {
                let why = "only the mode octet is served";
                self.refuse(peer, request.file, Code::Undefined, why);
            }
            Ok(Packet::Write) => self.refuse(peer, "", Code::Access, "nothing can be written here"),
            Ok(Packet::Ack(block)) => self.advance(peer, now, |session| session.ack(block, now)),
            Ok(Packet::Error { code, message }) => {
                let message = shortened(message);
                if let Some(transfer) = self.table.remove(&peer) {
                    let outcome = transfer.aborted(code, message);
                    self.ended(peer, &transfer, outcome, now);
                }
            }
            // A server is sent neither; the sender is confused, and an answer would not help it.
            Ok(Packet::Data { .. } | Packet::OptionAck(_)) => {}
            Err(malformed) => {
                tracing::debug!(%peer, %malformed, "a datagram was no TFTP packet");
                if bytes.starts_with(&[0, 1]) {
                    self.refuse(peer, "", Code::Illegal, "the request cannot be read");
                }
            }
        }
    }

    fn request(&mut self, peer: SocketAddr, file: &str, options: Options, now: Instant) {
        if let Some(transfer) = self.table.get_mut(&peer)
            && transfer.file == file
            && transfer.options == options
            && now.duration_since(transfer.started) < COPY_WINDOW
        {
            // Nothing acknowledged yet: our first packet may be what was lost.
            if transfer.running.as_ref().is_some_and(|(session, _)| session.acked() == 0) {
                self.advance(peer, now, |session| session.repeat(now));
            }
            return;
        }
        // A new wish from the same port takes the old one's place: EDK2 asks for the size, stops,
        // and asks for the file; a reset machine starts over.
        if let Some(old) = self.table.remove(&peer) {
            let outcome = old.aborted(0, "the client asked anew".to_owned());
            self.ended(peer, &old, outcome, now);
        }
        let siblings = self.table.keys().filter(|other| other.ip() == peer.ip()).count();
        if self.table.len() >= MAX_TRANSFERS || siblings >= MAX_PER_PEER {
            return self.refuse(peer, file, Code::Undefined, "too many transfers, ask again later");
        }
        self.tickets += 1;
        let ticket = self.tickets;
        let file = file.to_owned();
        self.outputs.push_back(Output::Load { peer, ticket, file: file.clone() });
        let transfer = Transfer { ticket, file, options, started: now, running: None };
        self.table.insert(peer, transfer);
    }

    /// A file that was asked for by [`Output::Load`] is here, or is not.
    pub fn loaded(
        &mut self,
        peer: SocketAddr,
        ticket: u64,
        content: io::Result<Content>,
        now: Instant,
    ) {
        let Some(transfer) = self.table.get_mut(&peer).filter(|t| t.ticket == ticket) else {
            return;
        };
        match content {
            Ok(content) => {
                let size = content.size() as u64;
                let (session, step) = Session::start(transfer.options, size, now);
                transfer.running = Some((session, content));
                self.advance(peer, now, |_| step);
            }
            Err(error) => self.unavailable(peer, &error, now),
        }
    }

    fn unavailable(&mut self, peer: SocketAddr, cause: &io::Error, now: Instant) {
        let Some(transfer) = self.table.remove(&peer) else { return };
        let (code, text, outcome) = match cause.kind() {
            io::ErrorKind::NotFound => (Code::NotFound, "no such file", Outcome::NotFound),
            io::ErrorKind::QuotaExceeded => {
                let text = "the box is short of memory, ask again later";
                (Code::Undefined, text, Outcome::Refused(text))
            }
            io::ErrorKind::FileTooLarge => {
                let text = "the file is too large for TFTP";
                (Code::Undefined, text, Outcome::Refused(text))
            }
            _ => {
                tracing::warn!(%peer, file = transfer.file, %cause, "a loader could not be read");
                let text = "the file cannot be read";
                (Code::Undefined, text, Outcome::Refused(text))
            }
        };
        self.outputs.push_back(Output::Packet { to: peer, bytes: error(code, text) });
        self.ended(peer, &transfer, outcome, now);
    }

    /// The clock moved.
    pub fn timer(&mut self, now: Instant) {
        let sessions = self.table.iter().filter_map(|(peer, t)| Some((*peer, t.running.as_ref()?)));
        let mut late: Vec<(Instant, SocketAddr)> = sessions
            .map(|(peer, (session, _))| (session.deadline(), peer))
            .filter(|(deadline, _)| *deadline <= now)
            .collect();
        // Who waits longest is served first, and the same events have the same outcome.
        late.sort_unstable();
        for (_, peer) in late {
            self.advance(peer, now, |session| session.timer(now));
        }
        let running = self.table.values().filter_map(|t| t.running.as_ref());
        self.due = running.map(|(session, _)| session.deadline()).min();
    }

    /// Give one session an event and do what it says.
    fn advance(
        &mut self,
        peer: SocketAddr,
        now: Instant,
        event: impl FnOnce(&mut Session) -> Step,
    ) {
        let Some(transfer) = self.table.get_mut(&peer) else { return };
        let Some((session, content)) = transfer.running.as_mut() else { return };
        let outcome = match event(session) {
            Step::Wait => return,
            Step::OptionAck => {
                let bytes = session.granted().to_bytes();
                self.outputs.push_back(Output::Packet { to: peer, bytes });
                None
            }
            Step::Blocks(blocks) => {
                let (content, blksize) = (content.clone(), session.blksize());
                self.outputs.push_back(Output::Blocks { to: peer, content, blksize, blocks });
                None
            }
            Step::Completed => Some(Outcome::Completed),
            Step::TimedOut => Some(Outcome::TimedOut),
        };
        let deadline = session.deadline();
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
        if let Some(outcome) = outcome
            && let Some(transfer) = self.table.remove(&peer)
        {
            self.ended(peer, &transfer, outcome, now);
        }
    }

    fn refuse(&mut self, peer: SocketAddr, file: &str, code: Code, text: &'static str) {
        self.outputs.push_back(Output::Packet { to: peer, bytes: error(code, text) });
        self.outputs.push_back(Output::Ended(Fetched::Tftp {
            peer: peer.ip().to_canonical(),
            file: shortened(file),
            bytes: 0,
            millis: 0,
            outcome: Outcome::Refused(text),
        }));
    }

    fn ended(&mut self, peer: SocketAddr, transfer: &Transfer, outcome: Outcome, now: Instant) {
        let bytes = transfer.running.as_ref().map_or(0, |(session, content)| {
            (session.acked() * u64::from(session.blksize())).min(content.size() as u64)
        });
        let millis = now.duration_since(transfer.started).as_millis();
        self.outputs.push_back(Output::Ended(Fetched::Tftp {
            peer: peer.ip().to_canonical(),
            file: shortened(&transfer.file),
            bytes,
            millis: u64::try_from(millis).unwrap_or(u64::MAX),
            outcome,
        }));
    }
}

impl Transfer {
    /// How a transfer that the client stopped is recorded.
    fn aborted(&self, code: u16, message: String) -> Outcome {
        let untouched = self.running.as_ref().is_some_and(|(session, _)| session.acked() == 0);
        if untouched && self.options.tsize.is_some() {
            Outcome::SizeOnly
        } else {
            Outcome::Aborted { code, message }
        }
    }
}

#[cfg(test)]
mod tests;
