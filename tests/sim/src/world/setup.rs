//! The rack before it is switched on: networks of the machines, registrations, and planned faults.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use dhcp::Mode;
use fastrand::Rng;
use stdx::MacAddr;

use super::{Place, World};
use crate::appliance::Appliance;
use crate::clock::{Clock, Moment, SECOND};
use crate::ledger::Ledger;
use crate::machine::{Firmware, Machine};
use crate::other_server::OtherServer;
use crate::queue::{Event, Queue};
use crate::rack::{self, Class, Rack};
use crate::settings::Settings;
use crate::summary::Summary;
use crate::wire::{Wire, percent};
use crate::world::trace::Trace;

/// Size of a loader in bytes: small, so that a rack has many short transfers.
const LOADER_BYTES: usize = 40 * 1024;
/// Machines for each visitor.
const MACHINES_PER_VISITOR: u32 = 16;
/// Pool addresses for each visitor, which gets a new address at each visit. The leases of earlier
/// visits can use all of these, so that a pool has no free address at times.
const ADDRESSES_PER_VISITOR: u32 = 3;

impl World {
    pub(super) fn new(settings: Settings, clock: Clock) -> Self {
        let mut rng = Rng::with_seed(settings.seed);
        let machines = settings.machines.min(rack::MAX_MACHINES);
        let visitors = machines.div_ceil(MACHINES_PER_VISITOR);
        let mut places: Vec<_> = (0..machines + visitors)
            .map(|index| place(index, machines, &settings, &mut rng))
            .collect();
        let size = |relayed: bool| {
            let of = |visitor: bool| {
                let there = places.iter().filter(|place| place.relayed == relayed);
                u32::try_from(there.filter(|place| place.visitor == visitor).count()).unwrap_or(0)
            };
            let squatted = f64::from(of(false)) * settings.faults.squatters / 100.0;
            of(false) + of(false) / 50 + 8 + ADDRESSES_PER_VISITOR * of(true) + squatted as u32 * 2
        };
        let (own, relayed) = (size(false), size(true));
        let squatters = squatters(own, relayed, &settings, &mut rng);
        let classes = classes(&places, own, &squatters, &settings, &mut rng);
        for (place, class) in places.iter_mut().zip(&classes) {
            // The box learns loaders only for machines with a record.
            if *class != Class::Stranger && percent(settings.faults.cards, &mut rng) {
                place.machine.hates = Some("snponly.efi");
            }
        }
        let config = rack::config(settings.mode, own, relayed);
        let mut world = Self {
            clock,
            rng,
            now: 0,
            queue: Queue::default(),
            wire: Wire::new(settings.faults),
            appliance: Appliance::new(config, Rack::new(classes), LOADER_BYTES, clock),
            other: (settings.mode == Mode::Proxy).then(OtherServer::default),
            missing: machines as usize,
            places,
            squatters,
            ledger: Ledger::default(),
            trace: Trace::default(),
            summary: Summary { machines: machines as usize, ..Summary::default() },
            settings,
        };
        world.schedule();
        world
    }

    fn schedule(&mut self) {
        let faults = self.settings.faults;
        self.queue.put(0, Event::Start);
        self.queue.put(SECOND, Event::Sweep);
        if let Some(at) = self.some_time(faults.kill) {
            self.queue.put(at, Event::Kill);
        }
        if let Some(at) = self.some_time(faults.gate) {
            self.queue.put(at, Event::Gate { is_closed: true });
        }
        for machine in 0..self.places.len() {
            if self.places[machine].visitor {
                if faults.until > 0 {
                    let at = self.rng.u64(..faults.until);
                    self.queue.put(at, Event::PowerOn { machine });
                }
                continue;
            }
            let at = self.rng.u64(..SECOND);
            self.queue.put(at, Event::PowerOn { machine });
            if faults.until > 10 * SECOND && percent(faults.power, &mut self.rng) {
                let orderly = self.rng.bool();
                let at = self.rng.u64(5 * SECOND..faults.until - 4 * SECOND);
                self.queue.put(at, Event::PowerOff { machine, orderly });
            }
        }
    }

    /// A random time after now, `mean` later on average. `None` if `mean` is 0, or if the faults
    /// have ended by then.
    pub(super) fn some_time(&mut self, mean: Moment) -> Option<Moment> {
        if mean == 0 {
            return None;
        }
        let away = -(1.0 - self.rng.f64()).ln() * mean as f64;
        let at = self.now + away as Moment + 1;
        (at < self.settings.faults.until).then_some(at)
    }
}

fn place(index: u32, machines: u32, settings: &Settings, rng: &mut Rng) -> Place {
    let visitor = index >= machines;
    let firmware = match rng.u8(..100) {
        _ if visitor => Firmware::Disk,
        0..35 => Firmware::Edk2Pxe,
        35..50 => Firmware::Edk2Http,
        50..65 => Firmware::BiosPxe,
        65..80 => Firmware::IpxeBios,
        80..95 => Firmware::IpxeEfi,
        _ => Firmware::Disk,
    };
    let machine = Machine::new(rack::mac_of(index, 0), firmware);
    // Some machines come from another network, and request the address that they had there.
    let elsewhere = Ipv4Addr::from_bits(Ipv4Addr::new(192, 168, 1, 10).to_bits() + index % 200);
    let machine = if firmware == Firmware::Disk && rng.bool() {
        machine.with_memory(elsewhere)
    } else {
        machine
    };
    let relayed = settings.mode == Mode::Pool && rng.u8(..8) == 0;
    Place { machine, relayed, visitor, generation: 0 }
}

fn squatters(
    own: u32,
    relayed: u32,
    settings: &Settings,
    rng: &mut Rng,
) -> BTreeMap<Ipv4Addr, MacAddr> {
    let mut squatters = BTreeMap::new();
    if settings.mode != Mode::Pool {
        return squatters;
    }
    for (is_relayed, size) in [(false, own), (true, relayed)] {
        let first = rack::pool(is_relayed, size).first.to_bits();
        for offset in 0..size {
            if percent(settings.faults.squatters, rng) {
                let number = u32::try_from(squatters.len()).unwrap_or(0);
                let [_, a, b, c] = number.to_be_bytes();
                let mac = MacAddr([6, 0, 0, a, b, c]);
                squatters.insert(Ipv4Addr::from_bits(first + offset), mac);
            }
        }
    }
    squatters
}

/// Class of each machine: registered, reserved (inside of the pool or outside), or unknown.
fn classes(
    places: &[Place],
    own: u32,
    squatters: &BTreeMap<Ipv4Addr, MacAddr>,
    settings: &Settings,
    rng: &mut Rng,
) -> Vec<Class> {
    let pool = rack::pool(false, own);
    // From the pool's end, where addresses are assigned last.
    let mut inside = (0..own)
        .map(|offset| Ipv4Addr::from_bits(pool.last.to_bits() - offset))
        .filter(|address| !squatters.contains_key(address));
    let mut outside = (0..).map(rack::outside);
    let mut all = (0..).map(|offset| Ipv4Addr::from_bits(pool.first.to_bits() + offset));
    let class = |place: &Place| {
        let wanted = rng.u8(..100);
        match settings.mode {
            _ if place.visitor => Class::Stranger,
            Mode::Reserved => all.next().map_or(Class::Stranger, Class::Reserved),
            Mode::Pool if wanted < 5 && !place.relayed => {
                inside.next().map_or(Class::Stranger, Class::Reserved)
            }
            Mode::Pool if wanted < 10 && !place.relayed => {
                outside.next().map_or(Class::Stranger, Class::Reserved)
            }
            _ if wanted < 40 => Class::Stranger,
            _ => Class::Registered,
        }
    };
    places.iter().map(class).collect()
}
