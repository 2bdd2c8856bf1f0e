//! Intel AMT of one machine: sends the requests for power, boot device, identity and inventory.

mod boot;
mod console;
mod events;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::envelope::{Class, Parameter, Request, Selectors};
use crate::identity::{Consent, Identity, IdentityParts, Inventory};
use crate::line::{Endpoint, Line, Turn};
use crate::message::Malformed;
use crate::power::{self, HostState, Plan, PowerReading, PowerRequest};
use crate::{Error, Fingerprint, ReturnTable};

const POWER_STATE: Class = Class("CIM_AssociatedPowerManagementService");
const POWER_SERVICE: Class = Class("CIM_PowerManagementService");
const STANDBY_SERVICE: Class = Class("IPS_PowerManagementService");
const COMPUTER: Class = Class("CIM_ComputerSystem");
const BOOT_CAPABILITIES: Class = Class("AMT_BootCapabilities");
const REDIRECTION: Class = Class("AMT_RedirectionService");
const CONSENT: Class = Class("IPS_OptInService");

/// Keys of the machine that AMT manages.
const MANAGED_SYSTEM: Selectors<'static> =
    &[("CreationClassName", "CIM_ComputerSystem"), ("Name", "ManagedSystem")];
/// Key of the only instance of this class. AMT 10 answers a `Get` with the key only.
const CAPABILITIES_KEY: Selectors<'static> = &[("InstanceID", "Intel(r) AMT:BootCapabilities 0")];
/// State of the redirection service without IDE-R and serial-over-LAN.
const REDIRECTION_OFF: u32 = 32_768;
/// States of the redirection service with IDE-R, serial-over-LAN, or both.
const REDIRECTION_ON: std::ops::RangeInclusive<u32> = 32_769..=32_771;
/// Values of `OSPowerSavingState`: full power, and modern standby.
const FULL_POWER: u32 = 2;
const MODERN_STANDBY: u32 = 3;

/// Intel AMT of one machine.
#[derive(Debug, Clone)]
pub struct Amt {
    line: Arc<Line>,
    endpoint: Endpoint,
}

impl Amt {
    /// Creates the client of a machine. It sends no packet before its first request.
    pub fn new(line: Arc<Line>, endpoint: Endpoint) -> Self {
        Self { line, endpoint }
    }

    /// Returns the fingerprint of the machine's TLS certificate; `None` without TLS. The login is
    /// not sent.
    ///
    /// # Errors
    /// The machine does not answer, or has another certificate than expected.
    pub async fn fingerprint(&self) -> Result<Option<Fingerprint>, Error> {
        self.line.turn(&self.endpoint, async |turn| turn.certificate().await).await
    }

    /// Reads the power state.
    ///
    /// # Errors
    /// The machine does not answer, refuses the login or the request, or sends an invalid answer.
    pub async fn power(&self) -> Result<HostState, Error> {
        let read = async |turn: &mut Turn<'_>| Ok(read_power(turn).await?.state);
        let state = self.line.turn(&self.endpoint, read).await?;
        self.learn_https_boot().await;
        Ok(state)
    }

    /// Requests a change of power. `Ok` means that the firmware accepted the request.
    ///
    /// # Errors
    /// [`Error::Unconfirmed`] if the firmware may have executed the request; the request must not
    /// be repeated before the power state is read. Every other error means that the power is not
    /// changed.
    pub async fn set_power(&self, request: PowerRequest) -> Result<(), Error> {
        // True as soon as the firmware may have received the request.
        let is_sent = AtomicBool::new(false);
        let done = self.line.turn(&self.endpoint, async |turn| {
            let plan = power::plan(request, &read_power(turn).await?)?;
            match plan {
                Plan::Nothing if request == PowerRequest::On => wake(turn).await,
                Plan::Nothing => Ok(()),
                Plan::Request(state) => {
                    if plan.needs_closed_redirection() {
                        close_redirection(turn).await?;
                    }
                    is_sent.store(true, Ordering::Relaxed);
                    let done = request_state(turn, state).await;
                    if plan.boots() && done.is_ok() {
                        turn.state.boot = None;
                    }
                    restore_redirection(turn).await;
                    done
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

    /// Reads the identity of the machine.
    ///
    /// # Errors
    /// The machine does not answer or refuses the login. A missing class is not an error.
    pub async fn identity(&self) -> Result<Identity, Error> {
        let general = &[("InstanceID", "Intel(r) AMT: General Settings")];
        let wired = &[("InstanceID", "Intel(r) AMT Ethernet Port Settings 0")];
        let read = async |turn: &mut Turn<'_>| {
            let parts = IdentityParts {
                package: turn.find(Class("CIM_ComputerSystemPackage"), &[]).await?,
                chassis: turn.find(Class("CIM_Chassis"), &[]).await?,
                software: turn.list(Class("CIM_SoftwareIdentity")).await?,
                bios: turn.find(Class("CIM_BIOSElement"), &[]).await?,
                setup: turn.find(Class("AMT_SetupAndConfigurationService"), &[]).await?,
                general: turn.find(Class("AMT_GeneralSettings"), general).await?,
                port: turn.find(Class("AMT_EthernetPortSettings"), wired).await?,
                consent: turn.find(CONSENT, &[]).await?,
            };
            let mut identity = Identity::read(&parts);
            // `Intel(R) Active Management Technology 12.0.67`
            let server = turn.server().and_then(|server| server.rsplit(' ').next());
            let server = server.filter(|version| version.starts_with(|c: char| c.is_ascii_digit()));
            identity.amt_version = identity.amt_version.or(server.map(str::to_owned));
            Ok(identity)
        };
        self.line.turn(&self.endpoint, read).await
    }

    /// Reads the inventory of the machine, as its firmware reported it at the last boot.
    ///
    /// # Errors
    /// The machine does not answer or refuses the login. A missing class is not an error.
    pub async fn inventory(&self) -> Result<Inventory, Error> {
        let read = async |turn: &mut Turn<'_>| {
            let chips = turn.list(Class("CIM_Chip")).await?;
            let modules = turn.list(Class("CIM_PhysicalMemory")).await?;
            let disks = turn.list(Class("CIM_MediaAccessDevice")).await?;
            Ok(Inventory::read(&chips, &modules, &disks))
        };
        self.line.turn(&self.endpoint, read).await
    }
}

fn malformed(class: Class, source: Malformed) -> Error {
    Error::Malformed { step: class.to_string(), source }
}

async fn read_power(turn: &mut Turn<'_>) -> Result<PowerReading, Error> {
    restore_redirection(turn).await;
    let missing = Error::Unsupported {
        what: "power control",
        reason: "the firmware does not have the class CIM_AssociatedPowerManagementService",
    };
    let instance = turn.find(POWER_STATE, &[]).await?.ok_or(missing)?;
    PowerReading::read(&instance).map_err(|source| malformed(POWER_STATE, source))
}

async fn request_state(turn: &mut Turn<'_>, state: u32) -> Result<(), Error> {
    let method = "RequestPowerStateChange";
    let state = state.to_string();
    let parameters = [
        Parameter::Text("PowerState", &state),
        Parameter::Reference("ManagedElement", COMPUTER, MANAGED_SYSTEM),
    ];
    let request = Request::invoke(POWER_SERVICE, method, &parameters).only_once();
    let done = turn.execute(&request, method, ReturnTable::State).await;
    explained(turn, done).await
}

/// Wakes a machine from modern standby, in which AMT reports it as on.
async fn wake(turn: &mut Turn<'_>) -> Result<(), Error> {
    let Some(service) = turn.find(STANDBY_SERVICE, &[]).await? else { return Ok(()) };
    let state = service.number::<u32>("OSPowerSavingState");
    if state.map_err(|source| malformed(STANDBY_SERVICE, source))? != Some(MODERN_STANDBY) {
        return Ok(());
    }
    let full = FULL_POWER.to_string();
    let parameters = [
        Parameter::Text("OSPowerSavingState", &full),
        Parameter::Reference("ManagedElement", COMPUTER, MANAGED_SYSTEM),
    ];
    let method = "RequestOSPowerSavingStateChange";
    turn.invoke(STANDBY_SERVICE, method, &parameters, ReturnTable::State).await
}

/// Ends sessions of IDE-R, serial-over-LAN and KVM: the firmware refuses a power-off while one is
/// open, AMT 11.8 even with return value 0. If the firmware refuses, for example because the user
/// lacks the permission for redirection, the power request itself decides.
async fn close_redirection(turn: &mut Turn<'_>) -> Result<(), Error> {
    match end_sessions(turn).await {
        Err(
            error @ (Error::Refused { .. }
            | Error::Fault { .. }
            | Error::Forbidden { .. }
            | Error::Http { .. }),
        ) => {
            tracing::debug!(error = %stdx::chain(&error), "AMT redirection not closed");
            turn.state.redirection = None;
            Ok(())
        }
        done => done,
    }
}

/// Switches the redirection service off. The former state is stored in the line.
async fn end_sessions(turn: &mut Turn<'_>) -> Result<(), Error> {
    let Some(service) = turn.find(REDIRECTION, &[]).await? else { return Ok(()) };
    let former = service.number::<u32>("EnabledState");
    let former = former.map_err(|source| malformed(REDIRECTION, source))?;
    let Some(former) = former.filter(|state| REDIRECTION_ON.contains(state)) else {
        return Ok(());
    };
    turn.state.redirection = Some(former);
    set_redirection(turn, REDIRECTION_OFF).await
}

/// Restores the redirection service after [`close_redirection`], also in a later turn.
async fn restore_redirection(turn: &mut Turn<'_>) {
    let Some(former) = turn.state.redirection else { return };
    match set_redirection(turn, former).await {
        Ok(()) => turn.state.redirection = None,
        Err(error) => {
            tracing::warn!(error = %stdx::chain(&error), former, "AMT redirection not restored");
            // Another attempt only if the firmware did not decide.
            turn.state.redirection.take_if(|_| !error.is_transient());
        }
    }
}

async fn set_redirection(turn: &mut Turn<'_>, state: u32) -> Result<(), Error> {
    let state = state.to_string();
    let parameters = [Parameter::Text("RequestedState", &state)];
    turn.invoke(REDIRECTION, "RequestStateChange", &parameters, ReturnTable::State).await
}

/// Replaces the error of a refused request if the firmware requires the consent of a user.
async fn explained(turn: &mut Turn<'_>, done: Result<(), Error>) -> Result<(), Error> {
    let may_need_consent = match &done {
        Err(Error::Refused { value, .. }) => value.may_need_consent(),
        Err(Error::Fault { fault, .. }) => fault.code == "AccessDenied",
        _ => false,
    };
    if !may_need_consent {
        return done;
    }
    let consent = turn.find(CONSENT, &[]).await.ok().flatten();
    match (done, consent.as_ref().and_then(Consent::read)) {
        (Err(source), Some(consent)) if consent.is_missing() => {
            Err(Error::Consent { source: Box::new(source) })
        }
        (done, _) => done,
    }
}
