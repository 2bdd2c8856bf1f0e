//! Execution of a Task's plan with a BMC driver.

mod sighted;

use std::time::Duration;

use bmc::{BootControl, BootOverride, Confirmation, Driver, Power, PowerAction};
use tokio::time::Instant;

use super::decide::Plan;

/// Maximum time for the confirmation of a power change.
const POWER_CONFIRM: Duration = Duration::from_secs(60);
/// Maximum time for the shutdown of the operating system.
const SHUT_DOWN: Duration = Duration::from_secs(300);
/// Interval between two reads of the power state.
const POLL: Duration = Duration::from_secs(1);
/// Maximum time for each half of a power cycle. Some BMCs report the old state until then.
const CYCLE_STEP: Duration = Duration::from_secs(15);

/// Reason why an attempt of an action failed.
#[derive(Debug)]
pub enum Failure {
    /// No driver could be created, because the Secret is missing or invalid.
    NotConnected(String),
    /// The BMC, or the connection to the BMC, failed.
    Bmc(bmc::Error),
    /// A command that must not be repeated failed, and the BMC did not execute the command.
    NotDone(bmc::Error),
    /// A command that must not be repeated failed, and the BMC may have executed the command.
    Unknown(bmc::Error),
    /// The operating system did not shut down within five minutes.
    StillOn,
    /// A machine without a BMC sent no request after the command to switch on.
    NotSighted {
        /// Time from the command to the end of the wait.
        within: Duration,
    },
    /// The machine is not silent: neither agent nor power hook can switch it off, or its system did
    /// not shut down.
    NotSwitchedOff {
        /// Name of the driver.
        driver: &'static str,
        /// Reason of the last power state.
        reason: String,
        /// True if the agent or the power hook confirmed the request to power off.
        is_confirmed: bool,
    },
}

impl Failure {
    /// Returns true if another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotConnected(_) => true,
            Self::Bmc(bmc::Error::NotConfirmed { .. }) => true,
            Self::Bmc(error) | Self::NotDone(error) => error.is_transient(),
            Self::Unknown(_)
            | Self::StillOn
            | Self::NotSighted { .. }
            | Self::NotSwitchedOff { .. } => false,
        }
    }

    /// Returns the error of the BMC or of its connection, as a sentence. Returns `None` if the BMC
    /// responds, or if the box withheld the command.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Bmc(bmc::Error::NotConfirmed { source, .. }) => {
                source.as_deref().map(bmc::Error::sentence)
            }
            Self::Bmc(bmc::Error::Withheld { .. })
            | Self::StillOn
            | Self::NotSighted { .. }
            | Self::NotSwitchedOff { .. } => None,
            Self::NotConnected(_) | Self::Bmc(_) | Self::NotDone(_) | Self::Unknown(_) => {
                Some(self.to_string())
            }
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConnected(why) => f.write_str(why),
            Self::Bmc(error) | Self::NotDone(error) => f.write_str(&error.sentence()),
            Self::Unknown(error) => write!(
                f,
                "{}; not sent again: check the machine, then request the action again",
                stdx::chain(error)
            ),
            Self::StillOn => write!(
                f,
                "the operating system did not shut down within {} s of the request",
                SHUT_DOWN.as_secs()
            ),
            Self::NotSighted { within } => write!(
                f,
                "sent, no sighting in {} s: check that Wake-on-LAN is on and deep sleep is off in \
                 the firmware setup, that the cable is in and the link LED is lit, and that the \
                 machine boots from the network first; or press its power button",
                within.as_secs()
            ),
            Self::NotSwitchedOff { driver, reason, is_confirmed: false } => write!(
                f,
                "{driver} cannot switch the machine off, and the machine is not silent: {reason}; \
                 install the power hook in its system, shut it down or press its power button, \
                 then request the action again"
            ),
            Self::NotSwitchedOff { reason, .. } => write!(
                f,
                "the agent or the power hook confirmed the request, but the machine did not power \
                 off: {reason}; check its console or press its power button"
            ),
        }
    }
}

impl From<bmc::Error> for Failure {
    fn from(error: bmc::Error) -> Self {
        Self::Bmc(error)
    }
}

/// Executes `plan` and returns a sentence about the result. `sent` is true if an earlier attempt
/// has sent a command that must not be repeated.
pub async fn act(driver: &dyn Driver, plan: Plan, sent: bool) -> Result<String, Failure> {
    let deadline = Instant::now() + POWER_CONFIRM;
    match (driver.confirmation(), &plan) {
        (Confirmation::Sighting { within }, Plan::Reach(Power::On)) => {
            return sighted::switch_on(driver, within).await;
        }
        (Confirmation::Sighting { .. }, Plan::Reach(Power::Off) | Plan::ShutDown) => {
            return sighted::switch_off(driver).await;
        }
        _ => {}
    }
    match plan {
        Plan::Reach(power) => {
            bmc::ensure(driver, power, deadline).await?;
            Ok(format!("power is {power}, confirmed"))
        }
        Plan::ShutDown => shut_down(driver).await,
        Plan::Read => {
            let power = driver.power().await?;
            let reason = driver.power_reason().map(|reason| format!(": {reason}"));
            Ok(format!("power is {power}{}", reason.unwrap_or_default()))
        }
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
                // The BMC switches the machine on by itself. If it does not, `ensure` switches the
                // machine on.
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
        Plan::HttpBoot(url) => {
            driver.set_http_boot(&url).await?;
            Ok(format!("the next boot is by UEFI HTTP boot from {url}"))
        }
        Plan::Insert(url) => {
            driver.insert_media(&url).await?;
            Ok(format!("inserted the virtual CD {url}"))
        }
        Plan::Eject => {
            driver.eject_media().await?;
            Ok("the virtual CD is ejected".to_owned())
        }
        Plan::Boot(boot) => set_boot_device(driver, boot).await,
    }
}

async fn set_boot_device(driver: &dyn Driver, boot: BootOverride) -> Result<String, Failure> {
    // As upstream for Home Assistant. The firmware of such a machine must boot from the network
    // first, and the box ends that boot when nothing is to be installed.
    if driver.capabilities().boot == BootControl::None {
        return Ok(format!(
            "not set: the {} has no boot device; the machine boots by the order of its firmware, \
             which must have {} first",
            driver.name(),
            boot.device
        ));
    }
    driver.set_boot_device(boot).await?;
    let when = if boot.persistent { "every boot is" } else { "the next boot is" };
    Ok(format!("{when} from {}", boot.device))
}

/// Waits during a power cycle until the BMC reports `power`; returns false after [`CYCLE_STEP`].
/// Errors of the BMC are ignored.
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
