//! Driver of the ports of a switch: converts each action to the requests of the crate `poe`.

use std::sync::{Arc, Mutex, PoisonError};

use ::poe::{Error as PoeError, Line, Login, Options, PortState, Switch};

use crate::{
    BootControl, BootOverride, Capabilities, Confirmation, Driver, Endpoint, Error, Pending, Power,
    PowerAction, Protocol,
};

/// Name of the driver for display.
const NAME: &str = "poe";
/// Power actions of a port. A switch cannot request a shutdown, or reset without a loss of power.
const PORT_POWER: &[PowerAction] = &[PowerAction::On, PowerAction::Off, PowerAction::Cycle];

/// Driver of one machine that a port powers.
pub(crate) struct PoeDriver {
    line: Arc<Line>,
    endpoint: Endpoint,
    options: Options,
    /// Report of the switch about the port at the last reading, as a sentence.
    report: Mutex<Option<String>>,
}

/// Checks the login of a port. Sends nothing.
pub(super) fn check(endpoint: &Endpoint) -> Result<(), Error> {
    let Protocol::Poe(options) = &endpoint.protocol else { return Ok(()) };
    let switch = Switch::new(Arc::default(), (**options).clone());
    switch.map(drop).map_err(|source| failed(endpoint, source))
}

/// Returns the weakness of a login, in words; `None` for version 3.
fn weakness(login: &Login) -> Option<&'static str> {
    match login {
        Login::User(_) => None,
        Login::Community(_) => Some("SNMPv2c, weak: the network carries its community as text"),
    }
}

fn failed(endpoint: &Endpoint, source: PoeError) -> Error {
    Error::Poe { address: endpoint.address.clone(), source: Box::new(source) }
}

impl PoeDriver {
    pub fn new(line: Arc<Line>, endpoint: Endpoint, options: Options) -> Self {
        Self { line, endpoint, options, report: Mutex::default() }
    }

    fn switch(&self) -> Result<Switch, Error> {
        let switch = Switch::new(Arc::clone(&self.line), self.options.clone());
        switch.map_err(|source| failed(&self.endpoint, source))
    }

    fn set_report(&self, report: Option<String>) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    async fn read_power(&self) -> Result<Power, Error> {
        self.set_report(None);
        let state =
            self.switch()?.state().await.map_err(|source| failed(&self.endpoint, source))?;
        self.set_report(Some(format!("PoE port {}: {state}", self.options.port)));
        Ok(match state {
            PortState::Off => Power::Off,
            PortState::Delivering { .. } => Power::On,
            // The port may deliver power at any time, so the machine is not off.
            PortState::Searching(_) | PortState::Faulty(_) | PortState::Unclear { .. } => {
                Power::Unknown
            }
        })
    }

    async fn change_power(&self, action: PowerAction) -> Result<(), Error> {
        let switch = self.switch()?;
        let done = match action {
            PowerAction::On => switch.switch_on().await,
            PowerAction::Off => switch.switch_off().await,
            PowerAction::Cycle => switch.cycle().await,
            PowerAction::Soft | PowerAction::Reset => {
                return Err(Error::Unsupported { driver: NAME, action });
            }
        };
        done.map_err(|source| {
            let breaks_cycle = source.breaks_cycle();
            let error = failed(&self.endpoint, source);
            match breaks_cycle {
                true => error.of_unconfirmed(action, &self.endpoint.address),
                false => error,
            }
        })
    }
}

impl Driver for PoeDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            power: PORT_POWER,
            boot: BootControl::None,
            features: Vec::new(),
            missing: Vec::new(),
            weakness: weakness(&self.options.login),
        }
    }

    fn confirmation(&self) -> Confirmation {
        Confirmation::Switch
    }

    fn power_reason(&self) -> Option<String> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(self.read_power())
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        Box::pin(self.change_power(action))
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        let reason = "a port of a switch has no boot device";
        let error = Error::BootDevice { driver: NAME, device: boot.device, reason };
        Box::pin(std::future::ready(Err(error)))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        // No switch reports the boot device.
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[cfg(test)]
mod tests {
    use ::poe::Login;
    use stdx::Secret;

    #[test]
    fn a_community_is_shown_as_a_weakness() {
        let weakness = super::weakness(&Login::Community(Secret::from("private".to_owned())));
        assert!(weakness.is_some_and(|it| it.starts_with("SNMPv2c, weak")));
    }
}
