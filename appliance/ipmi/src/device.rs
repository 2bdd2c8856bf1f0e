//! BMC with IPMI: converts each action to IPMI commands.

mod console;
mod records;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use records::Sensor;

use crate::command::boot::{BootFlags, BootRequest, GetBootFlags, SetBootOption};
use crate::command::chassis::{ChassisControl, ChassisIdentify, ChassisStatus, PowerRequest};
use crate::command::{DeviceId, GetDeviceId};
use crate::line::{Line, Turn};
use crate::message::Command;
use crate::{Endpoint, Error};

/// BMC with IPMI 2.0, or with IPMI 1.5 if it has nothing better. Every method has its own time
/// limit.
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
    /// Creates the device. It sends no packet before its first request.
    pub fn new(line: Arc<Line>, endpoint: Endpoint) -> Self {
        Self { line, endpoint }
    }

    /// Returns the weakness of the last session, in words; `None` for IPMI 2.0, and before the
    /// first session.
    pub fn weakness(&self) -> Option<&'static str> {
        self.line.is_legacy().then_some(
            "IPMI 1.5, weak: commands are authenticated by MD5 and not encrypted, because the BMC \
             has no IPMI 2.0",
        )
    }

    /// Reads the identification of the BMC (IPMI 2.0 §20.1).
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or the command, or sends invalid data.
    pub async fn device_id(&self) -> Result<DeviceId, Error> {
        self.request(&GetDeviceId).await
    }

    /// Reads the boot flags, active or not. Some BMCs, such as `ipmi_sim`, never report active
    /// flags.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or the command, or sends invalid data.
    pub async fn boot_flags(&self) -> Result<BootFlags, Error> {
        self.request(&GetBootFlags).await
    }

    /// Reads the power state: true if the machine has power.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or the command, or sends invalid data.
    pub async fn is_on(&self) -> Result<bool, Error> {
        self.request(&ChassisStatus).await
    }

    /// Requests a change of power. `Ok` means that the BMC accepted the request.
    ///
    /// # Errors
    /// The BMC does not respond, or refuses the login or the command. [`Error::Unconfirmed`] if the
    /// BMC may have executed a request that must not be repeated.
    pub async fn set_power(&self, request: PowerRequest) -> Result<(), Error> {
        // True as soon as the BMC may have received a command that must not be repeated.
        let is_sent = AtomicBool::new(false);
        let done = self.line.turn(&self.endpoint, async |turn| {
            let command = ChassisControl(request);
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
            Err(error) if is_sent.load(Ordering::Relaxed) => Err(Error::Unconfirmed {
                address: self.endpoint.address.clone(),
                command: ChassisControl::NAME,
                source: Box::new(error),
            }),
            done => done,
        }
    }

    /// Sets the boot device of the next boot or of every boot.
    ///
    /// # Errors
    /// The BMC does not respond, or refuses the login or the device.
    pub async fn set_boot(&self, boot: BootRequest) -> Result<(), Error> {
        self.line.turn(&self.endpoint, async move |turn| set_boot_flags(turn, boot).await).await
    }

    /// Switches the identification LED on for this time, at most 255 s; zero switches the LED off.
    ///
    /// # Errors
    /// The BMC does not respond, or refuses the login or the command.
    pub async fn identify(&self, time: Duration) -> Result<(), Error> {
        self.request(&ChassisIdentify(time)).await
    }

    async fn request<C: Command + Sync>(&self, command: &C) -> Result<C::Reply, Error> {
        self.line.turn(&self.endpoint, async |turn| turn.call(command).await).await
    }
}

/// Sets the boot flags. The BMC may refuse the other parameters that clients usually set.
async fn set_boot_flags(turn: &mut Turn<'_>, boot: BootRequest) -> Result<(), Error> {
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
        Err(Error::CommandRefused { address, refusal, .. }) => {
            tracing::debug!(bmc = %address, ?option, %refusal, "boot option not accepted");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
