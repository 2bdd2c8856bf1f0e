//! Requests of machines as evidence of their power state.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::controllers::power::{
    Confirming, FRESH, MachineSightings, PowerAction, Sighting, Sightings, Source,
};
use agent_service::Service;
use api::meta::ObjectKey;
use api::tinkerbell::Hardware;
use metadata::{PowerHooks, PowerOffError};
use neighbor_times::NeighborTimes;
use provisioning::index::{Index, neighbor_interface};
use provisioning::networks::board::Board;
use provisioning::observers::Observers;
use stdx::Clock;

/// Maximum number of recorded shutdowns. For a further shutdown, the oldest is removed.
const SHUTDOWNS_MAX: usize = 4096;

/// Requests that the boot services and the workflow service received.
pub struct BoxSightings {
    index: Index,
    agents: Arc<Service>,
    power_hooks: Arc<PowerHooks>,
    neighbor_times: Arc<NeighborTimes>,
    observers: Arc<Observers>,
    board: Board,
    clock: Arc<dyn Clock>,
    /// Start of the box, by the monotonic clock.
    since: Duration,
    /// Last acknowledged shutdowns by bmc Machine.
    shutdowns: Mutex<HashMap<ObjectKey, Shutdown>>,
}

/// Acknowledged shutdown of a machine.
#[derive(Debug, Clone, Copy)]
struct Shutdown {
    /// Moment of the acknowledgement, by the monotonic clock.
    at: Duration,
    /// True after a later request to switch on.
    is_woken: bool,
}

impl BoxSightings {
    /// Creates the sightings of a box that starts now.
    pub fn new(
        index: Index,
        (agents, power_hooks): (Arc<Service>, Arc<PowerHooks>),
        neighbor_times: Arc<NeighborTimes>,
        observers: Arc<Observers>,
        board: Board,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (since, shutdowns) = (clock.steady(), Mutex::default());
        Self {
            index,
            agents,
            power_hooks,
            neighbor_times,
            observers,
            board,
            clock,
            since,
            shutdowns,
        }
    }

    /// Requests the power-off from the agent on the machine. `None` if no agent has sent a message
    /// for a while.
    async fn power_off_by_agent(&self, hardware: &Hardware) -> Option<Result<(), String>> {
        let ids = agent_ids(hardware);
        let is_connected = |id: &&String| self.agents.silence_of(id).is_some_and(|it| it <= FRESH);
        let able = ids.iter().find(|id| self.agents.can_power_off(id));
        let id = able.or_else(|| ids.iter().find(is_connected))?;
        Some(self.agents.power_off(id).await.map_err(|error| stdx::chain(&error)))
    }

    fn shutdowns(&self) -> MutexGuard<'_, HashMap<ObjectKey, Shutdown>> {
        self.shutdowns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sightings for BoxSightings {
    fn of(&self, key: &ObjectKey) -> MachineSightings {
        let now = self.clock.steady();
        let record = self.shutdowns().get(key).copied();
        let shutdown = record.map(|it| now.saturating_sub(it.at));
        let is_woken = record.is_some_and(|it| it.is_woken);
        let listening = now.saturating_sub(self.since);
        let mut interfaces = self.board.interfaces();
        let Some(hardware) = self.index.by_machine(key) else {
            return MachineSightings {
                interfaces,
                shutdown,
                is_woken,
                listening,
                ..MachineSightings::default()
            };
        };
        let macs: Vec<_> = hardware.spec.macs().collect();
        let mut sightings = self.observers.request_times().of(&hardware.key(), now);
        let ids = agent_ids(&hardware);
        let agent_powers_off = ids.iter().any(|id| self.agents.can_power_off(id));
        let silence = ids.iter().filter_map(|id| self.agents.silence_of(id)).min();
        sightings.extend(silence.map(|age| Sighting { source: Source::Agent, age }));
        let arp = addresses(&hardware).filter_map(|it| self.neighbor_times.answered(it));
        let arp = arp.filter(|(mac, _)| macs.contains(mac)).map(|(_, age)| age).min();
        sightings.extend(arp.map(|age| Sighting { source: Source::Arp, age }));
        let hook = self.power_hooks.state(&hardware.key().to_string());
        sightings.extend(hook.map(|it| Sighting { source: Source::Hook, age: it.age }));
        let is_armed = hook.and_then(|it| it.is_armed);
        let last = macs.iter().find_map(|mac| neighbor_interface(*mac));
        if let Some(last) = last.filter(|last| interfaces.contains(last)) {
            interfaces = vec![last];
        }
        MachineSightings {
            macs,
            interfaces,
            sightings,
            shutdown,
            is_woken,
            is_armed,
            agent_powers_off,
            listening,
        }
    }

    fn acknowledged(&self, key: &ObjectKey, action: PowerAction) {
        let now = self.clock.steady();
        let mut shutdowns = self.shutdowns();
        match action {
            PowerAction::Off | PowerAction::Soft => {
                shutdowns.insert(key.clone(), Shutdown { at: now, is_woken: false });
            }
            PowerAction::On | PowerAction::Cycle | PowerAction::Reset => {
                if let Some(shutdown) = shutdowns.get_mut(key) {
                    shutdown.is_woken = true;
                }
            }
        }
        if shutdowns.len() > SHUTDOWNS_MAX {
            let eldest = shutdowns.iter().min_by_key(|(_, it)| it.at).map(|(key, _)| key.clone());
            eldest.map(|eldest| shutdowns.remove(&eldest));
        }
    }

    fn watch(&self, key: &ObjectKey) {
        if let Some(hardware) = self.index.by_machine(key) {
            addresses(&hardware).for_each(|address| self.neighbor_times.watch(address));
        }
    }

    fn power_off<'a>(&'a self, key: &'a ObjectKey) -> Confirming<'a> {
        Box::pin(async move {
            let hardware = self.index.by_machine(key);
            let hardware =
                hardware.ok_or_else(|| format!("no Hardware names the Machine {key}"))?;
            let by_agent = self.power_off_by_agent(&hardware).await;
            if by_agent == Some(Ok(())) {
                return Ok(());
            }
            let by_hook = self.power_hooks.power_off(&hardware.key().to_string()).await;
            match (by_hook, by_agent) {
                // The machine runs its agent, and no installed system.
                (Err(PowerOffError::NoHook), Some(Err(by_agent))) => Err(by_agent),
                (by_hook, _) => by_hook.map_err(|error| stdx::chain(&error)),
            }
        })
    }
}

/// Returns the IDs under which the agent on the machine may send its messages.
fn agent_ids(hardware: &Hardware) -> Vec<String> {
    let ids = hardware.spec.agent_id.clone().into_iter();
    ids.chain(hardware.spec.macs().map(|mac| mac.to_string())).collect()
}

/// Returns the reserved IPv4 addresses of a machine.
fn addresses(hardware: &Hardware) -> impl Iterator<Item = Ipv4Addr> {
    hardware.spec.addresses().filter_map(|address| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
}
