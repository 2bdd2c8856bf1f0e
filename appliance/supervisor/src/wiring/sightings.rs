//! Requests of machines as evidence of their power state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::controllers::power::{MachineSightings, PowerAction, Sighting, Sightings, Source};
use agent_service::Service;
use api::meta::ObjectKey;
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
    observers: Arc<Observers>,
    board: Board,
    clock: Arc<dyn Clock>,
    /// Start of the box, by the monotonic clock.
    since: Duration,
    /// Acknowledged shutdowns by bmc Machine, as moments of the monotonic clock.
    shutdowns: Mutex<HashMap<ObjectKey, Duration>>,
}

impl BoxSightings {
    /// Creates the sightings of a box that starts now.
    pub fn new(
        index: Index,
        agents: Arc<Service>,
        observers: Arc<Observers>,
        board: Board,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (since, shutdowns) = (clock.steady(), Mutex::default());
        Self { index, agents, observers, board, clock, since, shutdowns }
    }

    fn shutdowns(&self) -> MutexGuard<'_, HashMap<ObjectKey, Duration>> {
        self.shutdowns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sightings for BoxSightings {
    fn of(&self, key: &ObjectKey) -> MachineSightings {
        let now = self.clock.steady();
        let shutdown = self.shutdowns().get(key).map(|at| now.saturating_sub(*at));
        let listening = now.saturating_sub(self.since);
        let mut interfaces = self.board.interfaces();
        let Some(hardware) = self.index.by_machine(key) else {
            return MachineSightings {
                interfaces,
                shutdown,
                listening,
                ..MachineSightings::default()
            };
        };
        let macs: Vec<_> = hardware.spec.macs().collect();
        let mut sightings = self.observers.request_times().of(&hardware.key(), now);
        let ids = hardware.spec.agent_id.clone().into_iter();
        let ids = ids.chain(macs.iter().map(ToString::to_string));
        let silence = ids.filter_map(|id| self.agents.silence_of(&id)).min();
        sightings.extend(silence.map(|age| Sighting { source: Source::Agent, age }));
        let last = macs.iter().find_map(|mac| neighbor_interface(*mac));
        if let Some(last) = last.filter(|last| interfaces.contains(last)) {
            interfaces = vec![last];
        }
        MachineSightings { macs, interfaces, sightings, shutdown, listening }
    }

    fn acknowledged(&self, key: &ObjectKey, action: PowerAction) {
        let now = self.clock.steady();
        let mut shutdowns = self.shutdowns();
        match action {
            PowerAction::Off | PowerAction::Soft => {
                shutdowns.insert(key.clone(), now);
            }
            PowerAction::On | PowerAction::Cycle | PowerAction::Reset => {
                shutdowns.remove(key);
            }
        }
        if shutdowns.len() > SHUTDOWNS_MAX {
            let eldest = shutdowns.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone());
            eldest.map(|eldest| shutdowns.remove(&eldest));
        }
    }
}
