//! Events of the box, and the box's requests to the simulation.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use dhcp::{Destination, Outgoing, ServeMode, Stage};
use netboot::fallback::Event as Heard;
use netboot::loader::BootFile;
use stdx::MacAddr;

use super::World;
use crate::appliance::Errand;
use crate::clock::{MILLI, SECOND};
use crate::ledger::Violation;
use crate::machine::Fetch;
use crate::queue::Event;
use crate::rack::{self, Told};
use crate::store::Fate;
use crate::wire::percent;

/// Times of the box's two ARP probes, and the wait for an answer, as in `dhcp::arp`.
const PROBES: [u64; 2] = [0, 120 * MILLI];
const PROBE_WAIT: u64 = 300 * MILLI;
/// Duration of a commit, and of a slow commit.
const COMMIT: std::ops::Range<u64> = MILLI..8 * MILLI;
const SLOW_COMMIT: std::ops::Range<u64> = 50 * MILLI..800 * MILLI;
/// Downtime of the box after a kill, and time for which DHCP service stays closed.
const DOWN: std::ops::Range<u64> = 100 * MILLI..10 * SECOND;
const CLOSED: std::ops::Range<u64> = SECOND..45 * SECOND;
/// Header bytes of a TFTP data packet. A simulated block has no bytes, so the packet size is
/// computed from this constant and the block's length.
const BLOCK_HEAD: u64 = 4;

impl World {
    pub(super) fn kill(&mut self) {
        if self.appliance.is_up() {
            self.appliance.kill(&mut self.rng);
            self.summary.kills += 1;
            let at = self.now + self.rng.u64(DOWN);
            self.queue.put(at.min(self.settings.faults.until.max(self.now)), Event::Start);
        }
        if let Some(at) = self.some_time(self.settings.faults.kill) {
            self.queue.put(at, Event::Kill);
        }
    }

    /// Starts the box, if it is off, with a random wall clock: a real box may have no clock that
    /// runs while the power is off.
    pub(super) fn start(&mut self) {
        if !self.appliance.is_up() {
            let unix_secs = if self.rng.bool() { 0 } else { self.rng.u64(..4_000_000_000) };
            self.appliance.start(unix_secs, self.now);
        }
    }

    pub(super) fn gate(&mut self, is_closed: bool) {
        if is_closed {
            let closed = if self.rng.bool() { ServeMode::Closed } else { ServeMode::ProxyOnly };
            self.appliance.gate = closed;
            let at = self.now + self.rng.u64(CLOSED);
            let at = at.min(self.settings.faults.until);
            self.queue.put(at, Event::Gate { is_closed: false });
        } else {
            self.appliance.gate = ServeMode::Open;
            if let Some(at) = self.some_time(self.settings.faults.gate) {
                self.queue.put(at, Event::Gate { is_closed: true });
            }
        }
    }

    pub(super) fn commit_takes(&mut self) -> u64 {
        let is_slow = self.now < self.settings.faults.until
            && percent(self.settings.faults.commit, &mut self.rng);
        self.rng.u64(if is_slow { SLOW_COMMIT } else { COMMIT })
    }

    pub(super) fn committed(&mut self, errands: &mut Vec<Errand>) -> Result<(), Violation> {
        let (faults, rng) = (self.settings.faults, &mut self.rng);
        let fate = match self.now < faults.until {
            true if percent(faults.commit, rng) && rng.bool() => Fate::DoneUnknown,
            true if percent(faults.commit / 2.0, rng) => Fate::Failed,
            true if percent(faults.lies, rng) => Fate::Lie,
            _ => Fate::Done,
        };
        self.appliance.committed(fate, &mut self.ledger, self.now, errands)?;
        if self.appliance.gives_up() {
            self.appliance.kill(&mut self.rng);
            self.queue.put(self.now + SECOND, Event::Start);
        }
        Ok(())
    }

    /// Processes DHCP events: learns working loaders, and records the machine that got each
    /// address.
    pub(super) fn learn_from_story(&mut self) {
        for told in self.appliance.take_story() {
            match told {
                Told::Looks(mac, Stage::Pxe | Stage::HttpBoot) => self.learn(mac, Heard::Requested),
                Told::Looks(mac, Stage::Ipxe) => self.learn(mac, Heard::Ipxe),
                Told::Looks(..) => {}
                Told::Has(mac, address) => {
                    self.appliance.rack.given.insert(address, mac);
                }
            }
        }
    }

    pub(super) fn loaded(&mut self, peer: IpAddr, file: &str) {
        let IpAddr::V4(address) = peer else { return };
        // The ledger lists no user: the machine has stopped using the address already.
        let mac = self.appliance.rack.given.get(&address).copied();
        if let (Some(mac), Some(BootFile::File(file))) = (mac, BootFile::read(file)) {
            self.learn(mac, Heard::Fetched(&file));
        }
    }

    fn learn(&mut self, mac: MacAddr, heard: Heard<'_>) {
        let Some(place) = self.places.get(rack::index_of(mac)) else { return };
        let now = self.clock.instant(self.now);
        self.appliance.rack.learn(mac, place.machine.firmware, heard, now);
    }

    /// Probes an address in the box's own network, as `dhcp::arp` does.
    pub(super) fn ask(&mut self, address: Ipv4Addr) {
        let (now, epoch) = (self.now, self.appliance.epoch);
        let mut answer = (now + PROBE_WAIT, None);
        if let Some(holder) = self.user_of(address, false) {
            for probe in PROBES {
                if let Some(at) = self.there_and_back(probe).filter(|at| *at < answer.0) {
                    answer = (at, Some(holder));
                }
            }
        }
        let (at, holder) = answer;
        self.queue.put(at, Event::Answered { epoch, address, holder });
    }

    pub(super) fn send_dhcp(&mut self, outgoing: Outgoing, mac: MacAddr) {
        let index = |mac| Some(rack::index_of(mac)).filter(|index| *index < self.places.len());
        // A frame reaches its station, and a broadcast all stations; a client drops messages for
        // another MAC.
        let (machine, by_relay) = match outgoing.to {
            Destination::Broadcast | Destination::Link { .. } => (index(mac), Some(false)),
            Destination::Relay(_) => (index(mac), Some(true)),
            Destination::Address(address) => (self.ledger.user(address).and_then(index), None),
            Destination::BootServer(to) => (self.ledger.user(*to.ip()).and_then(index), None),
        };
        let size = outgoing.message.len();
        let arrivals = self.wire.carry_from_box(size, self.now, &mut self.rng);
        let there = machine.filter(|machine| {
            let place = &self.places[*machine];
            place.machine.mac == mac && by_relay.is_none_or(|relay| relay == place.relayed)
        });
        let bytes: Rc<[u8]> = outgoing.message.into();
        match there {
            Some(machine) => self
                .deliver(arrivals, || Event::DhcpToMachine { machine, bytes: Rc::clone(&bytes) }),
            None => self.summary.packets += 1,
        }
    }

    pub(super) fn send_tftp(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        let arrivals = self.wire.carry_from_box(bytes.len(), self.now, &mut self.rng);
        let Some(machine) = self.machine_at(to) else {
            self.summary.packets += 1;
            return;
        };
        let (port, bytes) = (to.port(), Rc::from(bytes));
        self.deliver(arrivals, || {
            let bytes = Rc::clone(&bytes);
            Event::TftpToMachine { machine, port, bytes }
        });
    }

    pub(super) fn send_block(&mut self, to: SocketAddr, number: u64, at: u64, length: u64) {
        let size = usize::try_from(length + BLOCK_HEAD).unwrap_or(usize::MAX);
        let arrivals = self.wire.carry_from_box(size, self.now, &mut self.rng);
        let Some(machine) = self.machine_at(to) else {
            self.summary.packets += 1;
            return;
        };
        let (port, number) = (to.port(), (number & 0xffff) as u16);
        self.deliver(arrivals, || Event::Block { machine, port, number, at, length });
    }

    fn machine_at(&self, to: SocketAddr) -> Option<usize> {
        let IpAddr::V4(address) = to.ip() else { return None };
        let mac = self.ledger.user(address)?;
        Some(rack::index_of(mac)).filter(|index| *index < self.places.len())
    }

    /// HTTP response of the box. Panics for a URL that neither the box's scripts nor its DHCP
    /// answers contain.
    pub(super) fn http_answer(&mut self, machine: usize, url: &str) -> Fetch {
        let path = url.strip_prefix(&format!("http://{}:7080/", rack::SERVER));
        let mac = self.places[machine].machine.mac;
        let parts: Vec<&str> = path.unwrap_or_default().split('/').collect();
        match parts[..] {
            ["ipxe", "script", of, "auto.ipxe"] if of.parse() == Ok(mac) => {
                self.learn(mac, Heard::Ipxe);
                Fetch::Script(self.appliance.rack.script(mac))
            }
            ["ipxe", "binary", of, file] if of.parse() == Ok(mac) => {
                self.learn(mac, Heard::Fetched(file));
                Fetch::File
            }
            ["agent", "vmlinuz-x86_64"] => Fetch::File,
            _ => panic!("the box named a URL that it does not serve: {url}"),
        }
    }
}
