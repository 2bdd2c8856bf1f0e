//! Hash of a run's events, and events as text.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use stdx::MacAddr;

use crate::clock::Moment;
use crate::message::{Reply, read_ask};
use crate::queue::Event;

/// A hash over everything that happened, in order.
#[derive(Debug, Default)]
pub struct Trace {
    /// SipHash with constant keys.
    hasher: DefaultHasher,
}

impl Trace {
    /// Adds an event to the hash.
    pub fn event(&mut self, at: Moment, event: &Event) {
        let hasher = &mut self.hasher;
        at.hash(hasher);
        std::mem::discriminant(event).hash(hasher);
        match event {
            Event::DhcpToBox((bytes, from)) => (bytes, from).hash(hasher),
            Event::DhcpToOther(bytes) => bytes.hash(hasher),
            Event::DhcpToMachine { machine, bytes } => (machine, bytes).hash(hasher),
            Event::TftpToBox { from, bytes } => (from, bytes).hash(hasher),
            Event::TftpToMachine { machine, port, bytes } => (machine, port, bytes).hash(hasher),
            Event::Block { machine, port, number, at, length } => {
                (machine, port, number, at, length).hash(hasher);
            }
            Event::Timer { machine, number } => (machine, number).hash(hasher),
            Event::HttpRequest { machine, exchange, url } => (machine, exchange, url).hash(hasher),
            Event::HttpAnswer { machine, exchange, .. } => (machine, exchange).hash(hasher),
            Event::Probed { machine, is_used, .. } => (machine, is_used).hash(hasher),
            Event::Answered { address, holder, .. } => {
                (address, holder.map(|mac| mac.0)).hash(hasher);
            }
            Event::Load { peer, ticket, file, .. } => (peer, ticket, file).hash(hasher),
            Event::Gate { is_closed } => is_closed.hash(hasher),
            Event::PowerOff { machine, orderly } => (machine, orderly).hash(hasher),
            Event::PowerOn { machine } => machine.hash(hasher),
            Event::Turn { .. }
            | Event::Committed { .. }
            | Event::TransferTimer { .. }
            | Event::Sweep
            | Event::Kill
            | Event::Start => {}
        }
    }

    /// Hash over all events so far.
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}

/// True for an event of the watched machine, except a block of a file, and for a kill, a start or
/// another serving state of the box.
pub fn concerns(event: &Event, watched: usize, mac: Option<MacAddr>) -> bool {
    match event {
        Event::DhcpToMachine { machine, .. }
        | Event::TftpToMachine { machine, .. }
        | Event::Timer { machine, .. }
        | Event::HttpRequest { machine, .. }
        | Event::HttpAnswer { machine, .. }
        | Event::Probed { machine, .. }
        | Event::PowerOff { machine, .. }
        | Event::PowerOn { machine } => *machine == watched,
        Event::DhcpToBox((bytes, _)) | Event::DhcpToOther(bytes) => {
            read_ask(bytes).is_some_and(|ask| Some(ask.mac) == mac)
        }
        Event::Kill | Event::Start | Event::Gate { .. } => true,
        _ => false,
    }
}

/// An event as one line of text, with decoded DHCP messages.
pub fn line(event: &Event) -> String {
    match event {
        Event::DhcpToBox((bytes, from)) => format!("to box {from:?}: {:?}", read_ask(bytes)),
        Event::DhcpToOther(bytes) => format!("to other: {:?}", read_ask(bytes)),
        Event::DhcpToMachine { bytes, .. } => format!("to machine: {:?}", Reply::read(bytes)),
        event => format!("{event:?}"),
    }
}
