//! Controller for Machines of `bmc.tinkerbell.org`: reads the power state of each BMC at intervals.

mod drivers;
mod refusals;

use std::sync::Arc;
use std::time::Duration;

use api::bmc::{MACHINE, Machine, MachineCondition, MachineStatus};
use api::meta::ObjectKey;
use bmc::{Endpoint, Power};
use jiff::Timestamp;
use stdx::Clock;

pub use drivers::{BmcDrivers, Drivers, connect};
pub use refusals::Refusals;

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
    /// Interval between two reads of a BMC's power state.
    pub poll: Duration,
    /// Recent refused logins, by Machine.
    pub refusals: Refusals,
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
            let machine = found.inspect_err(|_| self.refusals.forget(key))?;
            let reading = match drivers::login(objects, &machine.spec.connection, key).await {
                Ok(login) if self.refusals.holds(key, &login, self.clock.steady()) => {
                    return Ok(Requeue::After(self.poll));
                }
                Ok(login) => self.ask(key, login).await,
                Err(why) => Reading { power: Err(why), capabilities: Vec::new() },
            };
            if let Some(status) = decide(&machine.status, reading, self.clock.now()) {
                write_status(objects, MACHINE, &machine.metadata, &status).await?;
            }
            Ok(Requeue::After(self.poll))
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

impl MachineReconciler {
    /// Reads the power state, and records if the BMC refuses the login.
    async fn ask(&self, key: &ObjectKey, login: Endpoint) -> Reading {
        let driver = self.drivers.open(login.clone());
        let power = driver.power().await;
        match &power {
            Err(error) if error.refuses_login() => {
                self.refusals.refused(key, login, self.clock.steady());
            }
            Ok(_) => self.refusals.forget(key),
            Err(_) => {}
        }
        let capabilities = driver.capabilities().names().into_iter().map(str::to_owned).collect();
        Reading { power: power.map_err(|error| error.sentence()), capabilities }
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
mod tests {
    use api::bmc::MachineStatus;
    use bmc::Power;
    use jiff::Timestamp;

    use super::{Reading, decide};

    fn reading(power: Result<Power, &str>) -> Reading {
        Reading { power: power.map_err(str::to_owned), capabilities: vec!["on".to_owned()] }
    }

    #[test]
    fn writes_only_news() {
        let now = Timestamp::UNIX_EPOCH;
        let on = decide(&MachineStatus::default(), reading(Ok(Power::On)), now).unwrap();
        assert_eq!((on.power_state.as_deref(), on.capabilities.len()), (Some("on"), 1));
        assert_eq!(decide(&on, reading(Ok(Power::On)), now), None);
        let lost = decide(&on, reading(Err("no answer")), now).unwrap();
        assert_eq!(lost.power_state.as_deref(), Some("unknown"));
        assert_eq!(lost.conditions[0].status, "False");
        assert_eq!(decide(&lost, reading(Err("no answer")), now), None);
        assert!(decide(&lost, reading(Ok(Power::Off)), now).is_some());
        let other = Reading { capabilities: Vec::new(), ..reading(Ok(Power::On)) };
        assert!(decide(&on, other, now).is_some());
    }
}
