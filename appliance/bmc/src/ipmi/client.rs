//! IPMI driver: converts each action to IPMI commands.

mod console;
mod records;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::DuplexStream;

use super::command::{
    BootFlags, ChassisControl, ChassisIdentify, ChassisStatus, DeviceId, GetBootFlags, GetDeviceId,
    SetBootOption,
};
use super::line::{Line, Turn};
use super::message::Command as _;
use crate::{
    BootControl, BootOverride, Capabilities, Driver, Endpoint, Error, Feature, LogEntry, Pending,
    Power, PowerAction, Sensor,
};

/// Driver of a BMC by IPMI 2.0.
pub struct Ipmi {
    line: Arc<Line>,
    endpoint: Endpoint,
}

impl fmt::Debug for Ipmi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ipmi").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Ipmi {
    pub(crate) fn new(line: Arc<Line>, endpoint: Endpoint) -> Self {
        Self { line, endpoint }
    }

    /// Reads the identification of the BMC (IPMI 2.0 §20.1).
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or the command, or sends invalid data.
    pub async fn device_id(&self) -> Result<DeviceId, Error> {
        self.line.turn(&self.endpoint, async |turn| turn.call(&GetDeviceId).await).await
    }

    /// Reads the boot flags, active or not. Some BMCs, such as `ipmi_sim`, never report active
    /// flags.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or the command, or sends invalid data.
    pub async fn boot_flags(&self) -> Result<BootFlags, Error> {
        self.line.turn(&self.endpoint, async |turn| turn.call(&GetBootFlags).await).await
    }

    async fn control(&self, action: PowerAction) -> Result<(), Error> {
        // True as soon as the BMC may have received a command that must not be repeated.
        let is_sent = AtomicBool::new(false);
        let done = self.line.turn(&self.endpoint, async |turn| {
            let command = ChassisControl(action);
            if !command.may_repeat() {
                // This command is never sent again in another session, so a first request checks
                // the session.
                turn.call(&ChassisStatus).await?;
                is_sent.store(true, Ordering::Relaxed);
            }
            turn.call(&command).await
        });
        match done.await {
            Err(error @ Error::CommandRefused { .. }) => Err(error),
            Err(error) if is_sent.load(Ordering::Relaxed) => {
                let (address, source) = (self.endpoint.address.clone(), Box::new(error));
                Err(Error::Unanswered { address, action, source })
            }
            done => done,
        }
    }
}

/// Sets the boot flags. The BMC may refuse the other parameters that clients usually set.
async fn set_boot_flags(turn: &mut Turn<'_>, boot: BootOverride) -> Result<(), Error> {
    let began = optional(turn, SetBootOption::InProgress).await?;
    optional(turn, SetBootOption::KeepFlags).await?;
    optional(turn, SetBootOption::Unacknowledged).await?;
    let set = turn.call(&SetBootOption::Flags(boot)).await;
    if began {
        optional(turn, SetBootOption::Complete).await?;
    }
    set
}

/// Sets an optional parameter. Returns true if the BMC accepted the parameter.
async fn optional(turn: &mut Turn<'_>, option: SetBootOption) -> Result<bool, Error> {
    match turn.call(&option).await {
        Ok(()) => Ok(true),
        Err(Error::CommandRefused { address, code, .. }) => {
            tracing::debug!(bmc = %address, ?option, %code, "boot option not accepted");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

impl Driver for Ipmi {
    fn name(&self) -> &'static str {
        "ipmi"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            power: Capabilities::ALL_POWER,
            boot: BootControl::Always,
            features: vec![Feature::Identify, Feature::Sensors, Feature::Events, Feature::Console],
        }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(self.line.turn(&self.endpoint, async |turn| turn.call(&ChassisStatus).await))
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        Box::pin(self.control(action))
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        Box::pin(self.line.turn(&self.endpoint, async move |turn| set_boot_flags(turn, boot).await))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(async { Ok(self.boot_flags().await?.in_force()) })
    }

    fn identify(&self, time: Duration) -> Pending<'_, ()> {
        let command = ChassisIdentify(time);
        Box::pin(self.line.turn(&self.endpoint, async move |turn| turn.call(&command).await))
    }

    fn sensors(&self) -> Pending<'_, Vec<Sensor>> {
        Box::pin(self.read_sensors())
    }

    fn events(&self) -> Pending<'_, Vec<LogEntry>> {
        Box::pin(self.read_events())
    }

    fn console(&self) -> Pending<'_, DuplexStream> {
        Box::pin(self.open_console())
    }
}
