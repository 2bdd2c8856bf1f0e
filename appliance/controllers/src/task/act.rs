//! Carries out a plan on a driver.

use std::time::Duration;

use bmc::{Driver, Power, PowerAction};
use tokio::time::Instant;

use super::decide::Plan;

/// How long a power change may take to be confirmed before the attempt counts as failed.
const POWER_CONFIRM: Duration = Duration::from_secs(60);
/// How long an operating system may take to shut down.
const SHUT_DOWN: Duration = Duration::from_secs(300);
/// Between two readings of the power state.
const POLL: Duration = Duration::from_secs(1);

/// Why an attempt failed.
#[derive(Debug)]
pub enum Failure {
    /// No way to the controller yet: its Secret is missing or wrong.
    NotConnected(String),
    /// The controller or the way to it.
    Bmc(bmc::Error),
    /// The operating system did not shut down.
    StillOn,
}

impl Failure {
    /// Another attempt may end better.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotConnected(_) => true,
            Self::Bmc(bmc::Error::NotConfirmed { .. }) => true,
            Self::Bmc(error) => error.is_transient(),
            Self::StillOn => false,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConnected(why) => f.write_str(why),
            Self::Bmc(error) => f.write_str(&stdx::chain(error)),
            Self::StillOn => write!(
                f,
                "the operating system did not shut down within {} s of being asked",
                SHUT_DOWN.as_secs()
            ),
        }
    }
}

impl From<bmc::Error> for Failure {
    fn from(error: bmc::Error) -> Self {
        Self::Bmc(error)
    }
}

/// Carry out `plan`; `sent` tells that an earlier life of the box already sent it. Returns what
/// is now true, for people.
pub async fn act(driver: &dyn Driver, plan: Plan, sent: bool) -> Result<String, Failure> {
    let deadline = Instant::now() + POWER_CONFIRM;
    match plan {
        Plan::Reach(power) => {
            bmc::ensure(driver, power, deadline).await?;
            Ok(format!("power is {power}, confirmed"))
        }
        Plan::ShutDown => shut_down(driver).await,
        Plan::Read => Ok(format!("power is {}", driver.power().await?)),
        Plan::Restart(_) if sent => {
            bmc::ensure(driver, Power::On, deadline).await?;
            Ok("sent before the box restarted; not repeated; power is on".to_owned())
        }
        Plan::Restart(action) => {
            driver.set_power(action).await?;
            bmc::ensure(driver, Power::On, deadline).await?;
            Ok(format!("{action} done; power is on, confirmed"))
        }
        Plan::Boot(boot) => {
            driver.set_boot_device(boot).await?;
            let when = if boot.persistent { "every boot comes" } else { "the next boot comes" };
            Ok(format!("{when} from {}", boot.device))
        }
    }
}

async fn shut_down(driver: &dyn Driver) -> Result<String, Failure> {
    let deadline = Instant::now() + SHUT_DOWN;
    if driver.power().await? != Power::Off {
        driver.set_power(PowerAction::Soft).await?;
    }
    while driver.power().await? != Power::Off {
        if Instant::now() >= deadline {
            return Err(Failure::StillOn);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok("the operating system shut down; power is off, confirmed".to_owned())
}
