//! Main loop: takes events out of the queue, applies them to box, machines and network, and queues
//! the events that follow.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use dhcp::Mode;
use fastrand::Rng;
use stdx::MacAddr;

use crate::appliance::{Appliance, Errand};
use crate::clock::{Clock, Moment, SECOND};
use crate::ledger::{Ledger, Violation};
use crate::machine::Machine;
use crate::other_server::OtherServer;
use crate::queue::{Event, Queue};
use crate::rack;
use crate::settings::Settings;
use crate::summary::{Failure, Summary};
use crate::wire::{Arrivals, Wire};

mod box_side;
mod machine_side;
mod setup;
mod trace;

use trace::Trace;

/// Lease time as virtual time.
const LEASE: Moment = rack::LEASE_SECS as Moment * SECOND;
/// Maximum time until all machines are up, from one lease time after the last fault. By then the
/// leases of departed machines have ended (after twice their time, for a box that was restarted),
/// and firmware has tried all its boot entries.
const BOOT_BOUND: Moment = 4 * LEASE;
/// Time for which the machines must stay up.
const WATCHED: Moment = 2 * LEASE;

/// A machine and its place in the rack.
#[derive(Debug)]
struct Place {
    machine: Machine,
    /// True if the machine is in the second network, which reaches the box through a relay.
    relayed: bool,
    /// True for a machine that comes and goes, each time with another MAC address. A visitor need
    /// not be up at the end.
    visitor: bool,
    generation: u16,
}

struct World {
    settings: Settings,
    clock: Clock,
    rng: Rng,
    now: Moment,
    queue: Queue,
    wire: Wire,
    appliance: Appliance,
    other: Option<OtherServer>,
    places: Vec<Place>,
    /// Stations that use a pool address without a lease.
    squatters: BTreeMap<Ipv4Addr, MacAddr>,
    ledger: Ledger,
    trace: Trace,
    summary: Summary,
    /// Number of machines that must be up and are not.
    missing: usize,
}

/// Boots a rack.
///
/// # Errors
/// The first broken rule, or the machines that do not come up.
pub fn run(settings: Settings) -> Result<Summary, Failure> {
    let mut world = World::new(settings, Clock::start());
    world.live().map_err(|violation| Failure {
        seed: settings.seed,
        at_secs: world.now as f64 / SECOND as f64,
        violation,
    })?;
    Ok(world.summary)
}

impl World {
    fn live(&mut self) -> Result<(), Violation> {
        // A lease that had almost ended when the faults ended may still expire.
        let calm = self.settings.faults.until + LEASE;
        let bound = calm + BOOT_BOUND;
        let (mut ends, mut ran_out) = (bound, 0);
        while let Some((at, event)) = self.queue.take()
            && at < ends
        {
            let were_missing = self.missing;
            self.now = at;
            self.summary.events += 1;
            self.trace.event(at, &event);
            self.watch(&event);
            self.happens(event)?;
            if self.missing == 0 && were_missing > 0 {
                self.summary.all_up = at;
            }
            if self.missing == 0 && at >= calm && ends == bound {
                ran_out = self.summary.ran_out;
                ends = at + WATCHED;
            }
        }
        let late = self.summary.ran_out - ran_out;
        if ends == bound || self.missing > 0 || late > 0 {
            return Err(self.down(late));
        }
        self.summary.trace = self.trace.hash();
        self.summary.peaks = self.appliance.peaks;
        self.summary.lasted = self.now;
        Ok(())
    }

    /// Violation with the number of machines that are not up or lost their lease, and the state of
    /// up to five of them.
    fn down(&self, ran_out: u64) -> Violation {
        let down = self.places.iter().filter(|place| !place.visitor && !place.machine.is_up());
        let stories: Vec<_> = down.map(|place| place.machine.story()).take(5).collect();
        let count = self.missing + usize::try_from(ran_out).unwrap_or(usize::MAX);
        Violation::Down(count, stories.join("; "))
    }

    fn happens(&mut self, event: Event) -> Result<(), Violation> {
        let (now, mut errands) = (self.now, Vec::new());
        let epoch = self.appliance.epoch;
        let errands_of = &mut errands;
        match event {
            Event::DhcpToBox(datagram) => {
                let taken = self.appliance.datagram(datagram, now, errands_of);
                self.summary.lost += u64::from(!taken);
            }
            Event::TftpToBox { from, bytes } => {
                self.appliance.transfer(from, &bytes, now, errands_of);
            }
            Event::Turn { epoch: of } if of == epoch => {
                let takes = self.commit_takes();
                self.appliance.turn(&mut self.ledger, takes, now, errands_of)?;
                self.learn_from_story();
            }
            Event::Committed { epoch: of } if of == epoch => self.committed(errands_of)?,
            Event::Answered { epoch: of, address, holder } if of == epoch => {
                self.appliance.answered(address, holder, now, errands_of);
            }
            Event::TransferTimer { epoch: of } if of == epoch => {
                self.appliance.transfer_timer(now, errands_of);
            }
            Event::Load { epoch: of, peer, ticket, file } if of == epoch => {
                self.appliance.load(peer, ticket, &file, now, errands_of);
            }
            Event::Sweep => {
                self.appliance.sweep(now);
                self.queue.put(now + 5 * SECOND, Event::Sweep);
            }
            Event::Kill => self.kill(),
            Event::Start => self.start(),
            Event::Gate { is_closed } => self.gate(is_closed),
            Event::HttpRequest { machine, exchange, url } => {
                self.http_request(machine, exchange, &url);
            }
            Event::Turn { .. }
            | Event::Committed { .. }
            | Event::Answered { .. }
            | Event::TransferTimer { .. }
            | Event::Load { .. } => {}
            event => return self.happens_to_machine(event),
        }
        for errand in errands {
            self.run_errand(errand);
        }
        Ok(())
    }

    /// Counts a packet, and queues `event` at each of its arrival times.
    fn deliver(&mut self, arrivals: Arrivals, event: impl Fn() -> Event) {
        self.summary.packets += 1;
        self.summary.lost += u64::from(arrivals == [None, None]);
        for at in arrivals.into_iter().flatten() {
            self.queue.put(at, event());
        }
    }

    /// Station that answers an ARP probe for an address. The probe is sent in the box's own network
    /// or, with `relayed`, in the network of the relay.
    fn user_of(&self, address: Ipv4Addr, relayed: bool) -> Option<MacAddr> {
        if rack::pool(true, 1).first.octets()[..2] == address.octets()[..2] && !relayed {
            return None;
        }
        let machine = || {
            let mac = self.ledger.user(address)?;
            (self.places[rack::index_of(mac)].relayed == relayed).then_some(mac)
        };
        self.squatters.get(&address).copied().or_else(machine)
    }

    fn is_proxy(&self) -> bool {
        self.settings.mode == Mode::Proxy
    }

    fn watch(&self, event: &Event) {
        let Some(watched) = self.settings.watch else { return };
        let mac = self.places.get(watched).map(|place| place.machine.mac);
        if trace::concerns(event, watched, mac) {
            eprintln!("{:>12.6} {}", self.now as f64 / SECOND as f64, trace::line(event));
        }
    }

    fn run_errand(&mut self, errand: Errand) {
        let epoch = self.appliance.epoch;
        match errand {
            Errand::Turn(at) => self.queue.put(at, Event::Turn { epoch }),
            Errand::Commit(at) => self.queue.put(at, Event::Committed { epoch }),
            Errand::TransferTimer(at) => self.queue.put(at, Event::TransferTimer { epoch }),
            Errand::Load { peer, ticket, file } => {
                let at = self.now + self.rng.u64(50..3_000);
                self.queue.put(at, Event::Load { epoch, peer, ticket, file });
            }
            Errand::Ask(address) => self.ask(address),
            Errand::Dhcp(outgoing, mac) => self.send_dhcp(outgoing, mac),
            Errand::Tftp { to, bytes } => self.send_tftp(to, bytes),
            Errand::Block { to, number, at, length } => self.send_block(to, number, at, length),
            Errand::Loaded { peer, file } => self.loaded(peer, &file),
        }
    }
}
