//! Access to the requests that the box received from machines.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use api::meta::ObjectKey;
use bmc::{Power, PowerAction};
use stdx::MacAddr;

use super::{Conclusion, Evidence, FRESH, SILENT, Sighting, Source, conclude};

/// Addition to a reason if no NIC of the machine may wake it.
const NOT_ARMED: &str = "; its system reports that Wake-on-LAN is off, so it may not wake";

/// Addition to a reason if the agent on the machine takes no request to power off.
const AGENT_UNABLE: &str = "; its agent cannot switch it off";

/// Future of a request to power off; the error is a reason as a clause.
pub type Confirming<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Requests that the box received from machines. The owner of the boot services implements it.
pub trait Sightings: Send + Sync + 'static {
    /// Returns what the box knows about the machine of the bmc Machine `key`.
    fn of(&self, key: &ObjectKey) -> MachineSightings;

    /// Records a power change that the machine or its BMC acknowledged.
    fn acknowledged(&self, key: &ObjectKey, action: PowerAction);

    /// Watches the machine for the next minutes: its answers to ARP become sightings.
    fn watch(&self, key: &ObjectKey);

    /// Requests a shutdown from the agent or from the power hook in the system of the machine, and
    /// waits until one of them confirms. The request ends with the returned future.
    fn power_off<'a>(&'a self, key: &'a ObjectKey) -> Confirming<'a>;
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
    /// True if a request to switch on is later than the shutdown.
    pub is_woken: bool,
    /// True if a NIC may wake the machine, as its power hook reports; `None` if unknown.
    pub is_armed: Option<bool>,
    /// True if the agent on the machine waits for requests to power off.
    pub agent_powers_off: bool,
    /// Time for which the box has received requests, since its start.
    pub listening: Duration,
}

impl MachineSightings {
    /// Returns the power state from these requests and the report of the BMC.
    pub fn conclude(&self, report: Option<Power>, has_engine: bool) -> Conclusion {
        let (sightings, shutdown, is_woken) =
            (self.sightings.clone(), self.shutdown, self.is_woken);
        let mut found = conclude(&Evidence { report, sightings, shutdown, is_woken, has_engine });
        if report.is_none() && self.is_armed == Some(false) {
            found.reason.push_str(NOT_ARMED);
            found.summary.push_str(NOT_ARMED);
        }
        if report.is_none() && self.has_agent() && !self.can_power_off() {
            found.reason.push_str(AGENT_UNABLE);
            found.summary.push_str(AGENT_UNABLE);
        }
        found
    }

    /// Returns true if the machine can be asked to power off: its agent waits for the request, or
    /// the power hook in its system polls.
    pub fn can_power_off(&self) -> bool {
        let is_hook = |it: &Sighting| it.source == Source::Hook && it.is_fresh();
        self.agent_powers_off || self.sightings.iter().any(is_hook)
    }

    /// Returns true if the box has received no request for so long that the machine may be taken as
    /// off. After a restart of the box, an agent would have sent a message within [`FRESH`].
    pub fn are_silent(&self, conclusion: &Conclusion) -> bool {
        let is_old = conclusion.silence.is_none_or(|silence| silence >= SILENT);
        is_old && self.listening >= FRESH
    }

    /// Returns true if the agent on the machine is connected.
    pub fn has_agent(&self) -> bool {
        self.sightings.iter().any(|it| it.source == Source::Agent && it.is_fresh())
    }
}
