//! Controller for Machines of `bmc.tinkerbell.org`: reads the power state of each BMC at intervals.

mod drivers;
mod jitter;
mod polling;
mod queue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::bmc::{MACHINE, Machine, MachineCondition, MachineStatus, Provider};
use api::meta::ObjectKey;
use bmc::{Confirmation, Driver};
use jiff::Timestamp;
use stdx::Clock;

pub use drivers::{BmcDrivers, Drivers, connect, connect_machine};
pub use polling::Polls;
pub use queue::QueuedDrivers;

use polling::Outcome;

use crate::power::{Conclusion, MachineSightings};
use crate::runtime::{BMCS_AT_ONCE_MAX, Reconciled, Reconciler, Requeue};
use objects::{Objects, fetch, write_status};

/// Reconciler that updates `status.powerState` and the condition `Contactable`.
pub struct MachineReconciler {
    /// Access to Machines and Secrets.
    pub objects: Arc<dyn Objects>,
    /// Drivers for the management controllers.
    pub drivers: Arc<dyn Drivers>,
    /// Clock for the time in the condition.
    pub clock: Arc<dyn Clock>,
    /// Interval between two reads of the power state of a BMC that responds.
    pub poll: Duration,
    /// Waits between the readings of each Machine.
    pub polls: Polls,
}

impl Reconciler for MachineReconciler {
    fn name(&self) -> &'static str {
        "machine"
    }

    fn at_once_max(&self) -> usize {
        BMCS_AT_ONCE_MAX
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let objects = self.objects.as_ref();
            let found: Result<Machine, _> = fetch(objects, MACHINE, key).await;
            let machine = found.inspect_err(|_| self.polls.forget(key))?;
            let connection = &machine.spec.connection;
            let drivers = self.drivers.as_ref();
            let seen = drivers.sightings().map(|it| it.of(key)).unwrap_or_default();
            let reading = match connect_machine(objects, drivers, connection, key, Some(key)).await
            {
                Ok(driver) => {
                    let has_engine = connection.provider() == Ok(Provider::IntelAmt);
                    read(driver.as_ref(), &seen, has_engine).await
                }
                Err(why) => Reading {
                    conclusion: seen.conclude(None, false),
                    error: Some(why),
                    weakness: None,
                    capabilities: Vec::new(),
                    missing: BTreeMap::new(),
                },
            };
            let outcome = outcome(&machine.status, &reading);
            if let Some(status) = decide(&machine.status, reading, self.clock.now()) {
                write_status(objects, MACHINE, &machine.metadata, &status).await?;
            }
            Ok(Requeue::After(self.polls.next(key, outcome, self.poll)))
        })
    }
}

/// Result of one read of a BMC, together with the requests of the machine.
struct Reading {
    /// Power state with its reason.
    conclusion: Conclusion,
    /// Error of the BMC as a sentence; `None` if the BMC responded.
    error: Option<String>,
    /// Weakness of the protection of the connection, as a sentence.
    weakness: Option<&'static str>,
    /// Names of what the driver can do; empty without a driver.
    capabilities: Vec<String>,
    /// Names of what this machine does not permit, with the reason.
    missing: BTreeMap<String, String>,
}

/// Reads the power state and the capabilities. `seen` are the requests of the machine, and
/// `has_engine` is true if a management engine answers at the address of the machine.
async fn read(driver: &dyn Driver, seen: &MachineSightings, has_engine: bool) -> Reading {
    let power = driver.power().await;
    let offer = driver.capabilities();
    let capabilities = offer.names().into_iter().map(str::to_owned).collect();
    let missing = offer.missing.iter();
    let missing = missing.map(|(it, why)| (it.name().to_owned(), (*why).to_owned())).collect();
    let report = match driver.confirmation() {
        Confirmation::Report | Confirmation::Switch => power.as_ref().ok().copied(),
        Confirmation::Sighting { .. } => None,
    };
    let mut conclusion = seen.conclude(report, has_engine);
    if let (Some(_), Some(reason)) = (report, driver.power_reason()) {
        conclusion.summary = format!("{}; {reason}", conclusion.summary);
    }
    let error = power.err().map(|error| error.sentence());
    Reading { conclusion, error, weakness: offer.weakness, capabilities, missing }
}

/// Compares a reading with the status before it.
fn outcome(before: &MachineStatus, reading: &Reading) -> Outcome {
    let power = reading.conclusion.power.to_string();
    match &reading.error {
        Some(_) => Outcome::Unreachable,
        None if before.power_state.as_deref() == Some(&power) => Outcome::Same,
        None => Outcome::Changed,
    }
}

/// Returns the status after a reading, or `None` if only the time changed.
fn decide(before: &MachineStatus, reading: Reading, now: Timestamp) -> Option<MachineStatus> {
    let Reading { conclusion, error, weakness, capabilities, missing: missing_capabilities } =
        reading;
    let (power, power_reason) = (conclusion.power.to_string(), conclusion.summary);
    let contactable = if error.is_none() { "True" } else { "False" };
    let message = error.or(weakness.map(str::to_owned)).unwrap_or_default();
    let same = before.power_state.as_deref() == Some(&power)
        && before.power_reason == power_reason
        && before.capabilities == capabilities
        && before.missing_capabilities == missing_capabilities
        && before.conditions.iter().any(|condition| {
            condition.kind == "Contactable"
                && condition.status == contactable
                && condition.message == message
        });
    if same {
        return None;
    }
    let condition = MachineCondition {
        kind: "Contactable".to_owned(),
        status: contactable.to_owned(),
        last_update_time: Some(now),
        message,
    };
    let (power_state, conditions) = (Some(power), vec![condition]);
    Some(MachineStatus {
        power_state,
        power_reason,
        capabilities,
        missing_capabilities,
        conditions,
    })
}

#[cfg(test)]
mod tests;
