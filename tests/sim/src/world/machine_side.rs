//! Events of machines, and their actions.

use std::net::{SocketAddr, SocketAddrV4};
use std::rc::Rc;

use super::World;
use crate::clock::{MILLI, SECOND};
use crate::ledger::Violation;
use crate::machine::{Act, Fetch, Machine, Place as To, Turn};
use crate::message::{DECLINE, Reply, read_ask};
use crate::queue::Event;
use crate::rack;
use crate::wire::percent;

/// Times of a machine's two ARP probes, and the wait for an answer (RFC 5227 §2.1.1, shortened as
/// udhcpc does).
const PROBES: [u64; 2] = [0, 200 * MILLI];
const PROBE_WAIT: u64 = 500 * MILLI;
/// Time until TCP's first retransmission; each later wait is twice as long.
const SEGMENT_AGAIN: u64 = 200 * MILLI;
/// Time until a connection to a box that is off fails.
const NO_CONNECTION: u64 = 3 * SECOND;
/// Maximum time of an HTTP transfer of a script or file.
const HTTP_TAKES: u64 = 3 * SECOND;

impl World {
    pub(super) fn happens_to_machine(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::DhcpToMachine { machine, bytes } => {
                let reply = Reply::read(&bytes).expect("servers write lawful messages");
                self.act(machine, |it, turn| it.heard(reply, turn))
            }
            Event::DhcpToOther(bytes) => {
                self.other_server(&bytes);
                Ok(())
            }
            Event::TftpToMachine { machine, port, bytes } => {
                self.act(machine, |it, turn| it.tftp(port, &bytes, turn))
            }
            Event::Block { machine, port, number, at, length } => {
                self.act(machine, |it, turn| it.block(port, number, at, length, turn))
            }
            Event::Timer { machine, number }
                if number == self.places[machine].machine.timer_number =>
            {
                self.act(machine, Machine::timer)
            }
            Event::HttpAnswer { machine, exchange, epoch, fetch }
                if exchange == self.places[machine].machine.exchange =>
            {
                // A kill of the box after the request has ended the connection.
                let is_whole = epoch == self.appliance.epoch;
                let fetch = if is_whole { fetch } else { Fetch::Failed };
                self.act(machine, |it, turn| it.fetched(&fetch, turn))
            }
            Event::Probed { machine, exchange, is_used }
                if exchange == self.places[machine].machine.exchange =>
            {
                self.act(machine, |it, turn| it.probed(is_used, turn))
            }
            Event::PowerOff { machine, orderly } => self.power_off(machine, orderly),
            Event::PowerOn { machine } => self.power_on(machine),
            _ => Ok(()),
        }
    }

    fn power_off(&mut self, machine: usize, orderly: bool) -> Result<(), Violation> {
        self.act(machine, |it, turn| it.power_off(orderly, turn))?;
        let until = self.settings.faults.until;
        // Some machines stay away for longer than their lease.
        let away = if percent(70.0, &mut self.rng) {
            self.rng.u64(5 * SECOND..30 * SECOND)
        } else {
            self.rng.u64(30 * SECOND..3 * u64::from(rack::LEASE_SECS) * SECOND)
        };
        let back = self.now + away;
        if !self.places[machine].visitor {
            // A RELEASE may still be in transit; no machine returns before it has arrived.
            let soonest = self.now + 3 * SECOND;
            self.queue.put(back.min(until).max(soonest), Event::PowerOn { machine });
        } else if back < until {
            self.queue.put(back, Event::PowerOn { machine });
        }
        Ok(())
    }

    fn power_on(&mut self, machine: usize) -> Result<(), Violation> {
        let place = &mut self.places[machine];
        if place.visitor {
            place.generation = place.generation.wrapping_add(1);
            let index = u32::try_from(machine).unwrap_or(0);
            place.machine.mac = rack::mac_of(index, place.generation);
            let stays = self.rng.u64(20 * SECOND..200 * SECOND);
            let (at, orderly) = (self.now + stays, self.rng.bool());
            self.queue
                .put(at.min(self.settings.faults.until), Event::PowerOff { machine, orderly });
        }
        self.act(machine, Machine::power_on)
    }

    /// Runs `turn` on a machine, and executes the machine's actions.
    fn act(
        &mut self,
        index: usize,
        turn: impl FnOnce(&mut Machine, &mut Turn<'_>),
    ) -> Result<(), Violation> {
        let mut acts = Vec::new();
        let place = &mut self.places[index];
        let was_up = place.machine.is_up();
        turn(&mut place.machine, &mut Turn { now: self.now, rng: &mut self.rng, acts: &mut acts });
        let is_up = place.machine.is_up();
        if !place.visitor {
            self.missing = self.missing + usize::from(was_up) - usize::from(is_up);
        }
        for act in acts {
            self.done(index, act)?;
        }
        Ok(())
    }

    fn done(&mut self, index: usize, act: Act) -> Result<(), Violation> {
        let now = self.now;
        let place = &mut self.places[index];
        let mac = place.machine.mac;
        match act {
            Act::Dhcp { bytes, to } => self.send_to_servers(index, bytes, to),
            Act::Tftp { from, bytes } => {
                let (from, bytes) = (SocketAddr::from(from), Rc::from(bytes));
                let arrivals = self.wire.carry(now, &mut self.rng);
                self.deliver(arrivals, || Event::TftpToBox { from, bytes: Rc::clone(&bytes) });
            }
            Act::Get { url } => {
                let exchange = place.machine.exchange;
                let at = now + self.tcp();
                self.queue.put(at, Event::HttpRequest { machine: index, exchange, url });
            }
            Act::Probe { address } => self.probe(index, address),
            Act::Wake { at } => {
                place.machine.timer_number = place.machine.timer_number.wrapping_add(1);
                let number = place.machine.timer_number;
                self.queue.put(at, Event::Timer { machine: index, number });
            }
            Act::Uses { address, until } => {
                self.ledger.uses(address, mac, until, now)?;
                self.summary.in_use = self.summary.in_use.max(self.ledger.in_use());
            }
            Act::Leaves { address } => self.ledger.leaves(address, mac),
            Act::GivesBack { address } => self.ledger.gives_back(address, mac),
            Act::Booted => self.summary.boots += 1,
            Act::Lost => self.summary.ran_out += 1,
        }
        Ok(())
    }

    fn send_to_servers(&mut self, index: usize, mut bytes: Vec<u8>, to: To) {
        let place = &self.places[index];
        if place.relayed && to == To::Everybody {
            bytes[24..28].copy_from_slice(&rack::RELAY.octets());
        }
        if read_ask(&bytes).is_some_and(|ask| ask.kind == DECLINE) {
            self.summary.declined += 1;
        }
        let from = place.machine.address().map(|address| SocketAddrV4::new(address, 4011));
        let boot_server = from.filter(|_| matches!(to, To::BootServer(_)));
        let bytes: Rc<[u8]> = bytes.into();
        let hears = |server| match to {
            To::Everybody => true,
            To::Server(address) | To::BootServer(address) => address == server,
        };
        if hears(rack::SERVER) {
            let arrivals = self.wire.carry(self.now, &mut self.rng);
            self.deliver(arrivals, || Event::DhcpToBox((Rc::clone(&bytes), boot_server)));
        }
        if self.is_proxy() && hears(rack::OTHER_SERVER) {
            let arrivals = self.wire.carry(self.now, &mut self.rng);
            self.deliver(arrivals, || Event::DhcpToOther(Rc::clone(&bytes)));
        }
    }

    fn other_server(&mut self, bytes: &[u8]) {
        let reply = self.other.as_mut().and_then(|other| other.answer(bytes));
        if let Some(reply) = reply {
            let (machine, bytes) = (rack::index_of(reply.mac), Rc::from(reply.write()));
            let arrivals = self.wire.carry(self.now, &mut self.rng);
            self.deliver(arrivals, || Event::DhcpToMachine { machine, bytes: Rc::clone(&bytes) });
        }
    }

    /// Queues the result of a machine's ARP probes. Another user of the address is found, unless
    /// all probes or answers are lost.
    fn probe(&mut self, index: usize, address: std::net::Ipv4Addr) {
        let place = &self.places[index];
        let (mac, exchange, relayed) = (place.machine.mac, place.machine.exchange, place.relayed);
        // The ledger lists the machine itself as the user by now: only a station without a lease
        // can conflict.
        let holder = self.squatters.get(&address).copied();
        let holder = holder.or_else(|| self.user_of(address, relayed)).filter(|it| *it != mac);
        let is_used =
            holder.is_some() && PROBES.iter().any(|at| self.there_and_back(*at).is_some());
        let at = self.now + PROBE_WAIT;
        self.queue.put(at, Event::Probed { machine: index, exchange, is_used });
    }

    /// Arrival time of the answer to a packet that is sent `after` microseconds from now; `None` if
    /// the packet or the answer is lost.
    pub(super) fn there_and_back(&mut self, after: u64) -> Option<u64> {
        let there = self.wire.carry(self.now + after, &mut self.rng)[0]?;
        self.wire.carry(there, &mut self.rng)[0]
    }

    /// Round-trip time of a TCP segment and its acknowledgement, with retransmissions.
    fn tcp(&mut self) -> u64 {
        let mut takes = 2 * MILLI;
        let mut again = SEGMENT_AGAIN;
        while again < 10 * SECOND && self.there_and_back(0).is_none() {
            takes += again;
            again *= 2;
        }
        takes
    }

    pub(super) fn http_request(&mut self, machine: usize, exchange: u32, url: &str) {
        let epoch = self.appliance.epoch;
        let (fetch, takes) = if self.appliance.is_up() {
            let takes = self.tcp() + self.rng.u64(..HTTP_TAKES);
            (self.http_answer(machine, url), takes)
        } else {
            (Fetch::Failed, NO_CONNECTION)
        };
        self.queue.put(self.now + takes, Event::HttpAnswer { machine, exchange, epoch, fetch });
    }
}
