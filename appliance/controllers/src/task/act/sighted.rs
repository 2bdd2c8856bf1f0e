//! Power changes of a machine whose state only its own requests show.

use std::time::Duration;

use bmc::{Driver, Power, PowerAction};
use tokio::time::Instant;

use super::{Failure, POLL};

/// Maximum time for a machine to shut down or to become silent. Longer than the silence after which
/// a machine is taken as off.
const OFF_LIMIT: Duration = Duration::from_secs(180);

/// Switches the machine on, and waits `within` for its first request.
pub async fn switch_on(driver: &dyn Driver, within: Duration) -> Result<String, Failure> {
    match bmc::ensure(driver, Power::On, Instant::now() + within).await {
        Ok(()) => Ok(format!("power is on: {}", reason(driver))),
        Err(bmc::Error::NotConfirmed { source: None, .. }) => Err(Failure::NotSighted { within }),
        Err(error) => Err(error.into()),
    }
}

/// Switches the machine off through its agent or the power hook of its system, or takes a silent
/// machine as off.
pub async fn switch_off(driver: &dyn Driver) -> Result<String, Failure> {
    let deadline = Instant::now() + OFF_LIMIT;
    let mut is_confirmed = false;
    loop {
        match driver.power().await? {
            Power::Off => return Ok(format!("power is off: {}", reason(driver))),
            Power::Unknown if !is_confirmed && driver.is_silent() => {
                return Ok(format!("taken as off, because it is silent: {}", reason(driver)));
            }
            Power::On if !is_confirmed && can_shut_down(driver) => {
                driver.set_power(PowerAction::Soft).await?;
                is_confirmed = true;
            }
            Power::On | Power::Unknown => {}
        }
        if Instant::now() >= deadline {
            let (driver, reason) = (driver.name(), reason(driver));
            return Err(Failure::NotSwitchedOff { driver, reason, is_confirmed });
        }
        tokio::time::sleep(POLL).await;
    }
}

fn can_shut_down(driver: &dyn Driver) -> bool {
    driver.capabilities().power.contains(&PowerAction::Soft)
}

fn reason(driver: &dyn Driver) -> String {
    driver.power_reason().unwrap_or_default()
}
