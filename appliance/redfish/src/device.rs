//! Redfish service of one machine: sends the requests for power, boot device, media and inventory.

mod led;
mod media;
mod places;
mod survey;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::boot::{self, BootReading, BootRequest};
use crate::line::{Endpoint, Line, Turn};
use crate::power::{self, Plan, PowerRequest, PowerState};
use crate::{Document, Error, Inventory, Learned, LogRecord, Reading};

/// Interval between two readings of a setting that the service acknowledged.
const READ_PAUSE: Duration = Duration::from_secs(1);
/// Readings until an acknowledged setting counts as not applied.
const READS_MAX: u32 = 5;
/// Maximum wait for the power-off in a cycle that the service does not offer.
const OFF_LIMIT: Duration = Duration::from_secs(30);
/// Attempts of a boot override, each without a property that the service refused.
const BOOT_ATTEMPTS: u32 = 3;

/// Redfish service of one machine.
#[derive(Debug, Clone)]
pub struct Redfish {
    line: Arc<Line>,
    endpoint: Endpoint,
}

impl Redfish {
    /// Creates the client of a machine. It sends no packet before its first request.
    pub fn new(line: Arc<Line>, endpoint: Endpoint) -> Self {
        Self { line, endpoint }
    }

    /// Returns what the service offers for the machine; `None` before the first contact.
    pub fn learned(&self) -> Option<Learned> {
        self.line.learned(&self.endpoint.system)
    }

    /// Reads the power state.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or the request, or has no such system.
    pub async fn power(&self) -> Result<PowerState, Error> {
        let read = async |turn: &mut Turn<'_>| Ok(PowerState::of(&self.system(turn).await?));
        self.line.turn(&self.endpoint, read).await
    }

    /// Requests a change of power. `Ok` means that the BMC accepted the request.
    ///
    /// # Errors
    /// [`Error::Unconfirmed`] if the BMC may have executed the request; the request must not be
    /// repeated before the power state is read. Every other error means that the power is not
    /// changed.
    pub async fn set_power(&self, request: PowerRequest) -> Result<(), Error> {
        // True as soon as the BMC may have received the request.
        let is_sent = AtomicBool::new(false);
        let done = self.line.turn(&self.endpoint, async |turn| {
            let system = self.system(turn).await?;
            let types = places::reset_types(turn, &system).await?;
            let plan = power::plan(request, PowerState::of(&system), &types)?;
            let target = power::target(&system);
            match plan {
                Plan::Nothing => Ok(()),
                Plan::Reset(kind) => {
                    is_sent.store(true, Ordering::Relaxed);
                    turn.post(&target, &json!({ "ResetType": kind })).await
                }
                Plan::OffThenOn(on) => {
                    is_sent.store(true, Ordering::Relaxed);
                    turn.post(&target, &json!({ "ResetType": "ForceOff" })).await?;
                    let unconfirmed = |error| Error::Unconfirmed { source: Box::new(error) };
                    self.wait_off(turn).await.map_err(unconfirmed)?;
                    turn.post(&target, &json!({ "ResetType": on })).await.map_err(unconfirmed)
                }
            }
        });
        match done.await {
            Err(source) if is_sent.load(Ordering::Relaxed) && source.is_indeterminate() => {
                Err(Error::Unconfirmed { source: Box::new(source) })
            }
            done => done,
        }
    }

    async fn wait_off(&self, turn: &mut Turn<'_>) -> Result<(), Error> {
        let end = Instant::now() + OFF_LIMIT;
        while PowerState::of(&self.system(turn).await?) != PowerState::Off {
            if Instant::now() >= end {
                let step = "the power-off of a power cycle".to_owned();
                return Err(Error::Timeout { step, after: OFF_LIMIT });
            }
            sleep(READ_PAUSE).await;
        }
        Ok(())
    }

    /// Sets the boot override, and reads it back.
    ///
    /// # Errors
    /// The BMC does not respond, does not offer the device, refuses the request, or reports
    /// another device after it acknowledged the request.
    pub async fn set_boot(&self, request: &BootRequest) -> Result<(), Error> {
        let set = async |turn: &mut Turn<'_>| {
            let system = self.system(turn).await?;
            let settings = turn.readable(boot::settings(&system)).await?;
            let quirks = turn.state.quirks.clone();
            let mut boot = boot::changes(&system, settings.as_ref(), request, &quirks)?;
            for attempt in 1.. {
                match send_boot(turn, &boot, &system, settings.as_ref()).await {
                    Ok(()) => break,
                    Err(Error::Refused { status: 400, reason, is_busy: false, .. })
                        if attempt < BOOT_ATTEMPTS && !quirks.whole_boot =>
                    {
                        let fewer = boot::without_refused(&boot, &system, &reason);
                        let step = format!("PATCH {}", system.path);
                        boot = fewer.ok_or(Error::Refused {
                            step,
                            status: 400,
                            reason,
                            is_busy: false,
                        })?;
                    }
                    Err(error) => return Err(error),
                }
            }
            let (there, here) = boot::split(boot, settings.as_ref());
            let there = settings.map(|settings| (settings, there));
            for (resource, boot) in there.into_iter().chain([(system, here)]) {
                let difference = |found: &Document| boot::difference(&boot, found);
                if !boot.is_empty() {
                    read_back(turn, &resource.path, difference).await?;
                }
            }
            Ok(())
        };
        self.line.turn(&self.endpoint, set).await
    }

    /// Reads the boot override; `None` if the machine uses its own boot order.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or the request, or has no such system.
    pub async fn boot(&self) -> Result<Option<BootReading>, Error> {
        let read = async |turn: &mut Turn<'_>| {
            let system = self.system(turn).await?;
            let settings = turn.readable(boot::settings(&system)).await?;
            Ok(settings.as_ref().and_then(BootReading::of).or(BootReading::of(&system)))
        };
        self.line.turn(&self.endpoint, read).await
    }

    /// Inserts the image at `url` as a CD, and reads the slot back. Other media in the slot are
    /// ejected before.
    ///
    /// # Errors
    /// The BMC does not respond, has no virtual media, or refuses the image.
    pub async fn insert_media(&self, url: &str) -> Result<(), Error> {
        let insert = async |turn: &mut Turn<'_>| {
            let system = self.system(turn).await?;
            media::insert(turn, &self.endpoint.system, &system, url).await
        };
        self.line.turn(&self.endpoint, insert).await
    }

    /// Ejects the virtual CD, and reads the slot back. Without media, nothing is sent.
    ///
    /// # Errors
    /// The BMC does not respond, has no virtual media, or refuses the request.
    pub async fn eject_media(&self) -> Result<(), Error> {
        let eject = async |turn: &mut Turn<'_>| {
            let system = self.system(turn).await?;
            media::eject(turn, &self.endpoint.system, &system).await
        };
        self.line.turn(&self.endpoint, eject).await
    }

    /// Switches the identification LED on or off.
    ///
    /// # Errors
    /// The BMC does not respond, has no LED, or refuses the request.
    pub async fn identify(&self, is_on: bool) -> Result<(), Error> {
        let set = async |turn: &mut Turn<'_>| {
            let system = self.system(turn).await?;
            led::set(turn, &self.endpoint.system, system, is_on).await
        };
        self.line.turn(&self.endpoint, set).await
    }

    /// Reads all sensors of the chassis.
    ///
    /// # Errors
    /// The BMC does not respond, or refuses the login or the request.
    pub async fn sensors(&self) -> Result<Vec<Reading>, Error> {
        let read = async |turn: &mut Turn<'_>| {
            self.system(turn).await?;
            survey::sensors(turn, &self.endpoint.system).await
        };
        self.line.turn(&self.endpoint, read).await
    }

    /// Reads the newest entries of the event log, at most `limit`, oldest first.
    ///
    /// # Errors
    /// The BMC does not respond, has no log, or refuses the login or the request.
    pub async fn events(&self, limit: usize) -> Result<Vec<LogRecord>, Error> {
        let read = async |turn: &mut Turn<'_>| {
            let system = self.system(turn).await?;
            survey::events(turn, &self.endpoint.system, &system, limit).await
        };
        self.line.turn(&self.endpoint, read).await
    }

    /// Reads the inventory of the machine.
    ///
    /// # Errors
    /// The BMC does not respond, or refuses the login or the request.
    pub async fn inventory(&self) -> Result<Inventory, Error> {
        let read = async |turn: &mut Turn<'_>| {
            let system = self.system(turn).await?;
            survey::inventory(turn, &self.endpoint.system, &system).await
        };
        self.line.turn(&self.endpoint, read).await
    }

    /// Reads the system, and learns what the service offers for it. Paths that are no longer valid,
    /// for example after an update of the firmware, are looked up again once.
    async fn system(&self, turn: &mut Turn<'_>) -> Result<Document, Error> {
        let name = &self.endpoint.system;
        if let Some(places) = turn.state.places.get(name).cloned() {
            match turn.get(&places.system).await {
                Err(error) if error.is_absent() => turn.state.forget(),
                Err(error) => return Err(error),
                Ok(system) => {
                    if let Some(mut learned) = self.learned() {
                        let types = power::types(&system);
                        if !types.is_empty() {
                            learned.reset_types = types;
                        }
                        self.line.learn(name, learned);
                        return Ok(system);
                    }
                }
            }
        }
        let (system, learned) = places::discover(turn, name).await?;
        self.line.learn(name, learned);
        Ok(system)
    }
}

/// Sends the changes of `Boot` to the settings resource and to the system.
async fn send_boot(
    turn: &mut Turn<'_>,
    boot: &Map<String, Value>,
    system: &Document,
    settings: Option<&Document>,
) -> Result<(), Error> {
    let (there, here) = boot::split(boot.clone(), settings);
    if let Some(settings) = settings.filter(|_| !there.is_empty()) {
        turn.patch(settings, &json!({ "Boot": there })).await?;
    }
    if !here.is_empty() {
        turn.patch(system, &json!({ "Boot": here })).await?;
    }
    Ok(())
}

/// Reads a resource until `difference` finds none: some services apply a setting late.
async fn read_back(
    turn: &mut Turn<'_>,
    path: &str,
    difference: impl Fn(&Document) -> Option<(String, String)>,
) -> Result<(), Error> {
    for read in 1.. {
        let found = turn.get(path).await?;
        match difference(&found) {
            None => break,
            Some((what, found)) if read >= READS_MAX => {
                return Err(Error::NotApplied { what, found });
            }
            Some(_) => sleep(READ_PAUSE).await,
        }
    }
    Ok(())
}
