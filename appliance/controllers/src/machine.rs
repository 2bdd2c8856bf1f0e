//! Controller for Machines of `bmc.tinkerbell.org`: reads the power state of each BMC at intervals.

mod drivers;
mod jitter;
mod polling;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use api::bmc::{MACHINE, Machine, MachineCondition, MachineStatus};
use api::meta::ObjectKey;
use bmc::{Driver, Power};
use jiff::Timestamp;
use stdx::Clock;

pub use drivers::{BmcDrivers, Drivers, connect};
pub use polling::Polls;
pub use queue::QueuedDrivers;

use polling::Outcome;

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
            let reading = match connect(objects, self.drivers.as_ref(), connection, key).await {
                Ok(driver) => read(driver.as_ref()).await,
                Err(why) => Reading { power: Err(why), capabilities: Vec::new() },
            };
            let outcome = outcome(&machine.status, &reading);
            if let Some(status) = decide(&machine.status, reading, self.clock.now()) {
                write_status(objects, MACHINE, &machine.metadata, &status).await?;
            }
            Ok(Requeue::After(self.polls.next(key, outcome, self.poll)))
        })
    }
}

/// Result of one read of a BMC.
struct Reading {
    /// Power state, or an error as a sentence.
    power: Result<Power, String>,
    /// Names of what the driver can do; empty without a driver.
    capabilities: Vec<String>,
}

/// Reads the power state and the capabilities.
async fn read(driver: &dyn Driver) -> Reading {
    let power = driver.power().await.map_err(|error| error.sentence());
    let capabilities = driver.capabilities().names().into_iter().map(str::to_owned).collect();
    Reading { power, capabilities }
}

/// Compares a reading with the status before it.
fn outcome(before: &MachineStatus, reading: &Reading) -> Outcome {
    match &reading.power {
        Err(_) => Outcome::Unreachable,
        Ok(power) if before.power_state.as_deref() == Some(&power.to_string()) => Outcome::Same,
        Ok(_) => Outcome::Changed,
    }
}

/// Returns the status after a reading, or `None` if only the time changed.
fn decide(before: &MachineStatus, reading: Reading, now: Timestamp) -> Option<MachineStatus> {
    let Reading { power, capabilities } = reading;
    let (power, contactable, message) = match power {
        Ok(power) => (power.to_string(), "True", String::new()),
        Err(why) => ("unknown".to_owned(), "False", why),
    };
    let same = before.power_state.as_deref() == Some(&power)
        && before.capabilities == capabilities
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
    let conditions = vec![condition];
    Some(MachineStatus { power_state: Some(power), capabilities, conditions })
}

#[cfg(test)]
mod tests;
