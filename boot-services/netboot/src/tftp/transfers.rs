//! All transfers of one port, without the socket. Inputs are datagrams, loaded files and the time;
//! outputs are [`Output`]s.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::content::Content;
use super::packet::{Code, Options, Packet, error};
use super::session::{Session, Step};
use crate::events::shortened;
use crate::{FetchEvent, Outcome};

/// Maximum concurrent transfers of the server.
pub const MAX_TRANSFERS: usize = 512;
/// Maximum concurrent transfers of one IP address. A machine runs one; a simulated rack behind one
/// address runs more.
const MAX_PER_PEER: usize = 64;
/// An identical request from the same port within this time is a duplicate of the network, not a
/// new request.
const COPY_WINDOW: Duration = Duration::from_secs(1);

/// Action that the caller, who owns the socket, must do.
pub enum Output {
    /// Sends a single datagram: an OACK or ERROR packet.
    Packet {
        /// Address and port of the client.
        to: SocketAddr,
        /// Complete UDP payload of the datagram.
        bytes: Vec<u8>,
    },
    /// Sends these blocks of `content` as DATA packets.
    Blocks {
        /// Address and port of the client.
        to: SocketAddr,
        /// Content of the complete file.
        content: Content,
        /// Block size in bytes; only the last block is shorter.
        blksize: u16,
        /// Block numbers, from 1, before reduction modulo 65536.
        blocks: RangeInclusive<u64>,
    },
    /// Loads this file. [`Transfers::loaded`] takes the result.
    Load {
        /// Address and port of the client.
        peer: SocketAddr,
        /// Identifier to pass back to [`Transfers::loaded`].
        ticket: u64,
        /// File name as requested.
        file: String,
    },
    /// Passes the record of a finished transfer to the observer.
    Ended(FetchEvent),
}

struct Transfer {
    /// Distinguishes the result of this load from the result of an earlier request of the same
    /// peer.
    ticket: u64,
    file: String,
    options: Options,
    started: Instant,
    running: Option<(Session, Content)>,
}

/// Active transfers, by the client's address and port.
#[derive(Default)]
pub struct Transfers {
    table: HashMap<SocketAddr, Transfer>,
    outputs: VecDeque<Output>,
    tickets: u64,
    /// Earliest time at which a timer can expire: a lower bound, which [`Transfers::timer`]
    /// corrects.
    due: Option<Instant>,
}

impl Transfers {
    /// Removes and returns the next action, in order.
    pub fn output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the time at which to call [`Transfers::timer`]; `None` while no transfer is running.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the number of active transfers, at most [`MAX_TRANSFERS`].
    pub fn count(&self) -> usize {
        self.table.len()
    }

    /// Processes one received datagram.
    pub fn datagram(&mut self, peer: SocketAddr, bytes: &[u8], now: Instant) {
        match Packet::parse(bytes) {
            Ok(Packet::Read(request)) if request.octet => {
                self.request(peer, request.file, request.options, now);
            }
            Ok(Packet::Read(request)) => {
                let why = "only the mode octet is served";
                self.refuse(peer, request.file, Code::Undefined, why);
            }
            Ok(Packet::Write) => self.refuse(peer, "", Code::Access, "writing is not allowed"),
            Ok(Packet::Ack(block)) => self.advance(peer, now, |session| session.ack(block, now)),
            Ok(Packet::Error { code, message }) => {
                let message = shortened(message);
                if let Some(transfer) = self.table.remove(&peer) {
                    let outcome = transfer.aborted(code, message);
                    self.ended(peer, &transfer, outcome, now);
                }
            }
            // Clients never send these packets to a server. An answer would not help the sender.
            Ok(Packet::Data { .. } | Packet::OptionAck(_)) => {}
            Err(malformed) => {
                tracing::debug!(%peer, %malformed, "a datagram was not a TFTP packet");
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
            // The client has acknowledged nothing yet, so the server's first packet may be lost.
            if transfer.running.as_ref().is_some_and(|(session, _)| session.acked() == 0) {
                self.advance(peer, now, |session| session.repeat(now));
            }
            return;
        }
        // A new request from the same port replaces the old transfer. EDK2 requests the size,
        // stops, and requests the file; a reset machine starts over.
        if let Some(old) = self.table.remove(&peer) {
            let outcome = old.aborted(0, "the client requested the file again".to_owned());
            self.ended(peer, &old, outcome, now);
        }
        let siblings = self.table.keys().filter(|other| other.ip() == peer.ip()).count();
        if self.table.len() >= MAX_TRANSFERS || siblings >= MAX_PER_PEER {
            return self.refuse(peer, file, Code::Undefined, "too many transfers, try again later");
        }
        self.tickets += 1;
        let ticket = self.tickets;
        let file = file.to_owned();
        self.outputs.push_back(Output::Load { peer, ticket, file: file.clone() });
        let transfer = Transfer { ticket, file, options, started: now, running: None };
        self.table.insert(peer, transfer);
    }

    /// Processes the result of an [`Output::Load`].
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
                let text = "the box has no free memory, try again later";
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

    /// Retransmits and ends transfers whose timer has expired at `now`.
    pub fn timer(&mut self, now: Instant) {
        let sessions = self.table.iter().filter_map(|(peer, t)| Some((*peer, t.running.as_ref()?)));
        let mut late: Vec<(Instant, SocketAddr)> = sessions
            .map(|(peer, (session, _))| (session.deadline(), peer))
            .filter(|(deadline, _)| *deadline <= now)
            .collect();
        // The client that waits longest is served first, so that the same events give the same
        // result.
        late.sort_unstable();
        for (_, peer) in late {
            self.advance(peer, now, |session| session.timer(now));
        }
        let running = self.table.values().filter_map(|t| t.running.as_ref());
        self.due = running.map(|(session, _)| session.deadline()).min();
    }

    /// Passes an event to one session and executes the resulting step.
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
        self.outputs.push_back(Output::Ended(FetchEvent::Tftp {
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
        self.outputs.push_back(Output::Ended(FetchEvent::Tftp {
            peer: peer.ip().to_canonical(),
            file: shortened(&transfer.file),
            bytes,
            millis: u64::try_from(millis).unwrap_or(u64::MAX),
            outcome,
        }));
    }
}

impl Transfer {
    /// Returns the outcome to record for a transfer that the client stopped.
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
