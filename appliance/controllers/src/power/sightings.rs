//! Access to the requests that the box received from machines.

use std::time::Duration;

use api::meta::ObjectKey;
use bmc::{Power, PowerAction};
use stdx::MacAddr;

use super::{Conclusion, Evidence, FRESH, SILENT, Sighting, Source, conclude};

/// Requests that the box received from machines. The owner of the boot services implements it.
pub trait Sightings: Send + Sync + 'static {
    /// Returns what the box knows about the machine of the bmc Machine `key`.
    fn of(&self, key: &ObjectKey) -> MachineSightings;

    /// Records a power change that the machine or its BMC acknowledged.
    fn acknowledged(&self, key: &ObjectKey, action: PowerAction);
}

/// Sightings of a box that records none.
#[derive(Debug, Clone, Copy, Default)]
pub struct WithoutSightings;

impl Sightings for WithoutSightings {
    fn of(&self, _key: &ObjectKey) -> MachineSightings {
        MachineSightings::default()
    }

    fn acknowledged(&self, _key: &ObjectKey, _action: PowerAction) {}
}

/// Requests of one machine, and its place on the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineSightings {
    /// Hardware addresses of the Hardware whose `bmcRef` names the Machine.
    pub macs: Vec<MacAddr>,
    /// Interface on which the machine was last seen; every served interface if it was not seen.
    pub interfaces: Vec<String>,
    /// Last request from each source.
    pub sightings: Vec<Sighting>,
    /// Time since the machine acknowledged the last shutdown.
    pub shutdown: Option<Duration>,
    /// Time for which the box has received requests, since its start.
    pub listening: Duration,
}

impl MachineSightings {
    /// Returns the power state from these requests and the report of the BMC.
    pub fn conclude(&self, report: Option<Power>, has_engine: bool) -> Conclusion {
        let (sightings, shutdown) = (self.sightings.clone(), self.shutdown);
        conclude(&Evidence { report, sightings, shutdown, has_engine })
    }

    /// Returns true if the box has received no request for so long that the machine may be taken as
    /// off. After a restart of the box, an agent would have sent a message within [`FRESH`].
    pub fn are_silent(&self, conclusion: &Conclusion) -> bool {
        let is_old = conclusion.silence.is_none_or(|silence| silence >= SILENT);
        is_old && self.listening >= FRESH
    }

    /// Returns true if the agent on the machine is connected.
    pub fn has_agent(&self) -> bool {
        self.sightings.iter().any(|it| it.source == Source::Agent && it.age <= FRESH)
    }
}
