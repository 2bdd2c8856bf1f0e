//! Queue of future events, in order of virtual time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use stdx::MacAddr;

use crate::appliance::Datagram;
use crate::clock::Moment;
use crate::machine::Fetch;

/// One event; `machine` is the index of a machine. An event with an `epoch`, an `exchange` or the
/// `number` of a timer is ignored if the box or the machine has a newer one by then.
#[derive(Debug)]
pub enum Event {
    /// A DHCP datagram reaches the box.
    DhcpToBox(Datagram),
    /// A DHCP datagram reaches the other server: a broadcast, or a unicast to this server.
    DhcpToOther(Rc<[u8]>),
    /// A DHCP datagram reaches a machine.
    DhcpToMachine { machine: usize, bytes: Rc<[u8]> },
    /// A datagram reaches the box's port 69.
    TftpToBox { from: SocketAddr, bytes: Rc<[u8]> },
    /// A TFTP datagram reaches a machine.
    TftpToMachine { machine: usize, port: u16, bytes: Rc<[u8]> },
    /// A block of a file reaches a machine.
    Block { machine: usize, port: u16, number: u16, at: u64, length: u64 },
    /// The timer of a machine fires; ignored unless `number` is the last setting of this timer.
    Timer { machine: usize, number: u32 },
    /// An HTTP request reaches the box.
    HttpRequest { machine: usize, exchange: u32, url: String },
    /// An HTTP request of a machine ends, with the result `fetch`.
    HttpAnswer { machine: usize, exchange: u32, epoch: u32, fetch: Fetch },
    /// An ARP probe by a machine ends; `is_used` is true if another station uses the new address.
    Probed { machine: usize, exchange: u32, is_used: bool },
    /// An ARP probe by the box ends; `holder` is the station that uses the address, if any.
    Answered { epoch: u32, address: Ipv4Addr, holder: Option<MacAddr> },
    /// The box takes a batch of datagrams.
    Turn { epoch: u32 },
    /// The box's commit ends.
    Committed { epoch: u32 },
    /// The timer of the box's TFTP transfers fires.
    TransferTimer { epoch: u32 },
    /// The box's disk has read a file.
    Load { epoch: u32, peer: SocketAddr, ticket: u64, file: String },
    /// The box removes expired entries.
    Sweep,
    /// The box is killed.
    Kill,
    /// The box starts again.
    Start,
    /// Another DHCP server was detected (`is_closed` is true), or that server is gone (false).
    Gate { is_closed: bool },
    /// A machine shuts down (`orderly` is true), or loses power (false).
    PowerOff { machine: usize, orderly: bool },
    /// A machine is switched on.
    PowerOn { machine: usize },
}

#[derive(Debug)]
struct Scheduled {
    at: Moment,
    /// Order of scheduling, which decides between two events at one time.
    number: u64,
    event: Event,
}

/// Events in the order in which they happen.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
}

impl Queue {
    /// Schedules an event at a time.
    pub fn put(&mut self, at: Moment, event: Event) {
        self.scheduled += 1;
        self.heap.push(Reverse(Scheduled { at, number: self.scheduled, event }));
    }

    /// Takes the next event and its time.
    pub fn take(&mut self) -> Option<(Moment, Event)> {
        self.heap.pop().map(|Reverse(Scheduled { at, event, .. })| (at, event))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

#[cfg(test)]
mod tests {
    use super::{Event, Queue};

    #[test]
    fn events_come_in_order_of_time_then_of_scheduling() {
        let mut queue = Queue::default();
        for (at, machine) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            queue.put(at, Event::PowerOn { machine });
        }
        let order = std::iter::from_fn(|| match queue.take()? {
            (at, Event::PowerOn { machine }) => Some((at, machine)),
            _ => None,
        });
        assert_eq!(order.collect::<Vec<_>>(), [(3, 1), (3, 3), (5, 0), (5, 2)]);
    }
}
