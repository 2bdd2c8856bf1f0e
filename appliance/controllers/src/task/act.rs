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
/// Time in which a BMC that cycles takes the power away, and gives it back; some report the old
/// state until then.
const CYCLE_STEP: Duration = Duration::from_secs(15);

/// Why an attempt failed.
#[derive(Debug)]
pub enum Failure {
    /// No way to the controller yet: its Secret is missing or wrong.
    NotConnected(String),
    /// The controller or the way to it.
    Bmc(bmc::Error),
    /// A command that must not be repeated was not carried out.
    NotDone(bmc::Error),
    /// A command that must not be repeated may have been carried out.
    Unknown(bmc::Error),
    /// The operating system did not shut down.
    StillOn,
}

impl Failure {
    /// Another attempt may end better.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotConnected(_) => true,
            Self::Bmc(bmc::Error::NotConfirmed { .. }) => true,
            Self::Bmc(error) | Self::NotDone(error) => error.is_transient(),
            Self::Unknown(_) | Self::StillOn => false,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConnected(why) => f.write_str(why),
            Self::Bmc(error) | Self::NotDone(error) => f.write_str(&stdx::chain(error)),
            Self::Unknown(error) => write!(
                f,
                "{}; not sent again: look at the machine, then ask again",
                stdx::chain(error)
            ),
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

/// Carries out `plan`; `sent` tells that an earlier attempt sent a command that must not be
/// repeated. Returns what is now true, for people.
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
            Ok("sent by an earlier attempt and not repeated; power is on".to_owned())
        }
        Plan::Restart(action) => {
            driver.set_power(action).await.map_err(|error| match error {
                bmc::Error::Unanswered { .. } => Failure::Unknown(error),
                error => Failure::NotDone(error),
            })?;
            let was_off = action == PowerAction::Cycle && is_seen(driver, Power::Off).await;
            if was_off {
                // It comes back by itself; a machine that does not is switched on.
                is_seen(driver, Power::On).await;
            }
            bmc::ensure(driver, Power::On, deadline).await?;
            Ok(match (action, was_off) {
                (_, true) => format!("{action} done: power was off and is on, confirmed"),
                (PowerAction::Cycle, false) => {
                    format!("{action} acknowledged; power is on and was not seen off")
                }
                (_, false) => format!("{action} acknowledged; power is on"),
            })
        }
        Plan::Boot(boot) => {
            driver.set_boot_device(boot).await?;
            let when = if boot.persistent { "every boot comes" } else { "the next boot comes" };
            Ok(format!("{when} from {}", boot.device))
        }
    }
}

/// Waits until the power is read as `power` in a cycle. A BMC that cannot be read for a moment is
/// read again.
async fn is_seen(driver: &dyn Driver, power: Power) -> bool {
    let deadline = Instant::now() + CYCLE_STEP;
    while Instant::now() < deadline {
        if matches!(driver.power().await, Ok(found) if found == power) {
            return true;
        }
        tokio::time::sleep(POLL / 2).await;
    }
    false
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
