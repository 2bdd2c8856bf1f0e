//! Property: after any sequence of packets, losses, restarts and delays, no address belongs to two
//! machines.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stdx::MacAddr;

use super::{at, pool_config, reboots, renews, selects, subnet};
use crate::config::Config;
use crate::engine::{Engine, Output};
use crate::leases::{Change, Lease};
use crate::reservation::{Directory, Reservation};
use crate::vectors::*;

const CLIENTS: u8 = 6;
/// Time of the wall clock at the start, in Unix seconds, if the clock is right.
const UNIX_SECS: u64 = 1_800_000_000;

#[derive(Debug, Clone)]
enum Step {
    Discover(u8),
    /// The client accepts its last offer.
    Select(u8),
    Renew(u8),
    /// The client requests any address, as after a reboot.
    Reboot(u8, u8),
    Release(u8),
    Decline(u8),
    Wait(u64),
    /// The service restarts; the wall clock is right afterwards, or not set.
    Restart {
        right: bool,
    },
    /// Another station uses the next checked address.
    Squat,
    /// The operator reserves an address for the first client, or removes the reservation.
    Reserve(Option<u8>),
    OtherPool(u8),
}

fn steps() -> impl Strategy<Value = Vec<(Step, bool)>> {
    let client = 0..CLIENTS;
    let step = prop_oneof![
        4 => client.clone().prop_map(Step::Discover),
        4 => client.clone().prop_map(Step::Select),
        2 => client.clone().prop_map(Step::Renew),
        1 => (client.clone(), 98..105_u8).prop_map(|(client, last)| Step::Reboot(client, last)),
        1 => client.clone().prop_map(Step::Release),
        1 => client.prop_map(Step::Decline),
        2 => (0..4000_u64).prop_map(Step::Wait),
        1 => any::<bool>().prop_map(|right| Step::Restart { right }),
        1 => Just(Step::Squat),
        1 => proptest::option::of(100..104_u8).prop_map(Step::Reserve),
        1 => (100..104_u8).prop_map(Step::OtherPool),
    ];
    // With each step, a flag: true if the message, or its answer, arrives.
    proptest::collection::vec((step, proptest::bool::weighted(0.85)), 0..120)
}

#[derive(Default)]
struct Records(Option<Reservation>);

impl Directory for Records {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        self.0.clone().filter(|record| record.mac == mac)
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.0.as_ref().and_then(|record| record.fixed).is_some_and(|it| it.address == address)
    }
}

struct World {
    engine: Engine,
    config: Config,
    store: BTreeMap<Ipv4Addr, Lease>,
    records: Records,
    offers: HashMap<u8, Ipv4Addr>,
    /// Lease of each client, with its end.
    leases: HashMap<u8, (Ipv4Addr, Instant)>,
    squatter: bool,
    events: EventLog,
    start: Instant,
    now: Instant,
}

fn mac(client: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, client])
}

impl World {
    fn new() -> Self {
        let mut config = pool_config();
        config.conflict_checks = true;
        config.subnets = vec![subnet("10.77.0.0/24", at(100), at(103))];
        let now = Instant::now();
        Self {
            engine: Engine::new(config.clone(), &[], UNIX_SECS, now),
            config,
            store: BTreeMap::new(),
            records: Records::default(),
            offers: HashMap::new(),
            leases: HashMap::new(),
            squatter: false,
            events: EventLog::default(),
            start: now,
            now,
        }
    }

    fn restart(&mut self, right: bool) {
        let leases: Vec<Lease> = self.store.values().copied().collect();
        let unix = if right { UNIX_SECS + (self.now - self.start).as_secs() } else { 0 };
        self.engine = Engine::new(self.config.clone(), &leases, unix, self.now);
    }

    fn send(&mut self, client: u8, packet: Packet, arrives: bool) -> Result<(), TestCaseError> {
        let bytes = packet.mac(mac(client)).end();
        // Without a pause the rate limiter would refuse packets, which is not the subject of this
        // test.
        self.now += Duration::from_secs(1);
        let mut outputs =
            self.engine.handle(&bytes, &self.records, &self.events, self.now).unwrap();
        while let Some(output) = outputs.pop() {
            match output {
                Output::Check { address } => {
                    let squatter = MacAddr([6; 6]);
                    let holder = std::mem::take(&mut self.squatter).then_some(squatter);
                    let more =
                        self.engine.checked(address, holder, &self.records, &self.events, self.now);
                    outputs.extend(more);
                }
                Output::Send(outgoing) => {
                    if outgoing.needs_commit {
                        self.commit();
                    }
                    if arrives {
                        self.receive(client, &outgoing.message)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn commit(&mut self) {
        for change in self.engine.take_changes() {
            match change {
                Change::Put(lease) => self.store.insert(lease.address, lease),
                Change::Remove(address) => self.store.remove(&address),
            };
        }
    }

    fn receive(&mut self, client: u8, message: &[u8]) -> Result<(), TestCaseError> {
        let octets: [u8; 4] = message[16..20].try_into().unwrap();
        let address = Ipv4Addr::from(octets);
        let options = crate::messages::options::Options::read(&message[240..], &[], &[]).unwrap();
        match options.get(53) {
            Some([2]) => {
                self.offers.insert(client, address);
            }
            Some([5]) => {
                for (other, (theirs, until)) in &self.leases {
                    prop_assert!(
                        other == &client || theirs != &address || *until <= self.now,
                        "{address} has two machines, {other} and {client}"
                    );
                }
                let secs = u32::from_be_bytes(options.get(51).unwrap().try_into().unwrap());
                let until = self.now + Duration::from_secs(u64::from(secs));
                self.leases.insert(client, (address, until));
            }
            _ => {
                self.leases.remove(&client);
            }
        }
        Ok(())
    }

    fn holds(&self, client: u8) -> Option<Ipv4Addr> {
        let (address, until) = self.leases.get(&client)?;
        (*until > self.now).then_some(*address)
    }

    fn step(&mut self, step: Step, arrives: bool) -> Result<(), TestCaseError> {
        let ours = SERVER.octets();
        match step {
            Step::Discover(client) => self.send(client, udhcpc(DISCOVER), arrives)?,
            Step::Select(client) => {
                if let Some(address) = self.offers.remove(&client) {
                    self.send(client, selects(mac(client), address), arrives)?;
                }
            }
            Step::Renew(client) => {
                if let Some(address) = self.holds(client) {
                    self.send(client, renews(mac(client), address), arrives)?;
                }
            }
            Step::Reboot(client, last) => {
                self.send(client, reboots(mac(client), at(last)), arrives)?
            }
            Step::Release(client) => {
                if let Some(address) = self.holds(client) {
                    self.leases.remove(&client);
                    self.send(client, udhcpc(7).ciaddr(address).option(54, &ours), arrives)?;
                }
            }
            Step::Decline(client) => {
                if let Some(address) = self.holds(client) {
                    self.leases.remove(&client);
                    let decline = udhcpc(4).option(50, &address.octets()).option(54, &ours);
                    self.send(client, decline, arrives)?;
                }
            }
            Step::Wait(secs) => self.now += Duration::from_secs(secs),
            Step::Restart { right } => self.restart(right),
            Step::Squat => self.squatter = true,
            Step::Reserve(last) => {
                let netmask = Ipv4Addr::new(255, 255, 255, 0);
                let record = last.map(|last| Reservation::new(mac(0), at(last), netmask));
                self.records = Records(record.map(|it| Reservation { lease_secs: 600, ..it }));
            }
            Step::OtherPool(first) => {
                self.config.subnets = vec![subnet("10.77.0.0/24", at(first), at(103))];
                self.engine.reconfigure(self.config.clone(), self.now);
            }
        }
        Ok(())
    }
}

/// A pool that was extended does not assign an address that a record outside of the pool assigned.
#[test]
fn a_former_reservation_stays_its_machines_while_its_lease_lasts() {
    let mut world = World::new();
    for step in [
        Step::OtherPool(102),
        Step::Reserve(Some(100)),
        Step::Reboot(0, 100),
        Step::Reserve(None),
        Step::OtherPool(100),
        Step::Discover(1),
        Step::Select(1),
    ] {
        world.step(step, true).unwrap();
    }
    assert_eq!((world.holds(0), world.holds(1)), (Some(at(100)), Some(at(101))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn no_address_ever_has_two_machines(steps in steps()) {
        let mut world = World::new();
        for (step, arrives) in steps {
            world.step(step, arrives)?;
        }
    }
}
