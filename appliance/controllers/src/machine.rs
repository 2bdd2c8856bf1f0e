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
                Err(error) => Err(error),
            };
            if let Some(status) = decide(&machine.status, &reading, self.clock.now()) {
                write_status(objects, MACHINE, &machine.metadata, &status).await?;
            }
            Ok(Requeue::After(self.poll))
        })
    }
}

impl MachineReconciler {
    /// Reads the power state, and records if the BMC refuses the login.
    async fn ask(&self, key: &ObjectKey, login: Endpoint) -> Result<Power, String> {
        let power = self.drivers.open(login.clone()).power().await;
        match &power {
            Err(error) if error.refuses_login() => {
                self.refusals.refused(key, login, self.clock.steady());
            }
            Ok(_) => self.refusals.forget(key),
            Err(_) => {}
        }
        power.map_err(|error| error.sentence())
    }
}

/// Returns the status after a reading, or `None` if only the time changed.
fn decide(
    before: &MachineStatus,
    reading: &Result<Power, String>,
    now: Timestamp,
) -> Option<MachineStatus> {
    let (power, contactable, message) = match reading {
        Ok(power) => (power.to_string(), "True", String::new()),
        Err(why) => ("unknown".to_owned(), "False", why.clone()),
    };
    let same = before.power_state.as_deref() == Some(&power)
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
    Some(MachineStatus { power_state: Some(power), conditions: vec![condition] })
}

#[cfg(test)]
mod tests {
    use api::bmc::MachineStatus;
    use bmc::Power;
    use jiff::Timestamp;

    use super::decide;

    #[test]
    fn writes_only_news() {
        let now = Timestamp::UNIX_EPOCH;
        let on = decide(&MachineStatus::default(), &Ok(Power::On), now).unwrap();
        assert_eq!(on.power_state.as_deref(), Some("on"));
        assert_eq!(decide(&on, &Ok(Power::On), now), None);
        let lost = decide(&on, &Err("no answer".into()), now).unwrap();
        assert_eq!(lost.power_state.as_deref(), Some("unknown"));
        assert_eq!(lost.conditions[0].status, "False");
        assert_eq!(decide(&lost, &Err("no answer".into()), now), None);
        assert!(decide(&lost, &Ok(Power::Off), now).is_some());
    }
}
