//! Methods of the engine: power requests, boot configuration, redirection.

use super::https_boot::HTTPS_SOURCE;
use super::{Executed, Firmware, OFF, ON};
use crate::chassis::{BootSource, ChassisAction};
use crate::soap::{self, Request};

/// State of the redirection service without sessions.
const REDIRECTION_OFF: u32 = 32_768;

impl Firmware {
    /// Executes a method and returns its return value.
    pub(super) fn invoke(&mut self, request: &Request<'_>, method: &str) -> Result<u32, Executed> {
        let number = |name: &str| request.parameter(name).and_then(|text| text.parse().ok());
        match (request.class.as_str(), method) {
            ("CIM_PowerManagementService", "RequestPowerStateChange") => {
                let target = request.reference("ManagedElement", "Name");
                if target.as_deref() != Some("ManagedSystem") {
                    return Ok(5);
                }
                self.request_power(number("PowerState").unwrap_or(0))
            }
            ("CIM_BootConfigSetting", "ChangeBootOrder") => self.change_boot_order(request),
            ("CIM_BootService", "SetBootConfigRole") => {
                let key = request.reference("BootConfigSetting", "InstanceID");
                Ok(match (self.behavior.role_return, key.as_deref(), number("Role")) {
                    (Some(value), ..) => value,
                    (_, Some("Intel(r) AMT: Boot Configuration 0"), Some(role @ (0 | 1))) => {
                        self.is_next = role == 1;
                        0
                    }
                    _ => 5,
                })
            }
            ("AMT_RedirectionService", "RequestStateChange") => {
                self.redirection = number("RequestedState").unwrap_or(self.redirection);
                if !self.offers_console() {
                    self.serial.end_session();
                }
                Ok(0)
            }
            ("AMT_PublicKeyManagementService", "AddTrustedRootCertificate") => {
                let blob = request.parameter("CertificateBlob").unwrap_or_default();
                Ok(self.add_root(blob))
            }
            ("IPS_PowerManagementService", "RequestOSPowerSavingStateChange") => {
                self.standby = number("OSPowerSavingState").unwrap_or(self.standby);
                Ok(0)
            }
            _ => Err(Executed::Fault("b:ActionNotSupported", "The action is not supported.")),
        }
    }

    fn change_boot_order(&mut self, request: &Request<'_>) -> Result<u32, Executed> {
        let Some(source) = request.body.and_then(|body| soap::child(body, "Source")) else {
            self.source = None;
            return Ok(0);
        };
        if self.needs_consent() {
            return Err(Executed::Fault("b:AccessDenied", "The sender was not authorized."));
        }
        if source.first_element_child().is_none() {
            let reason = "The supplied SOAP violates the corresponding XML schema definition.";
            return Err(Executed::Fault("c:SchemaValidationError", reason));
        }
        let key = request.reference("Source", "InstanceID");
        let sources = self.read("CIM_BootSourceSetting").unwrap_or_default();
        let is_known = |key: &String| sources.iter().any(|one| one.has_key("InstanceID", key));
        match key.filter(is_known) {
            Some(key) => {
                self.source = Some(key);
                Ok(0)
            }
            None => Ok(4),
        }
    }

    /// States that may be requested now.
    pub fn available(&self) -> Vec<u32> {
        match (self.power, self.behavior.lms) {
            (ON, false) => vec![10, 8, 5, 11],
            (ON, true) => vec![10, 8, 5, 11, 4, 7, 14, 12],
            (4, _) => vec![2, 8, 5],
            _ => vec![2],
        }
    }

    fn needs_consent(&self) -> bool {
        let (required, state) = self.behavior.consent;
        required == u32::MAX && !matches!(state, 3 | 4)
    }

    fn request_power(&mut self, state: u32) -> Result<u32, Executed> {
        if self.needs_consent() {
            return Ok(16);
        }
        if let Some(value) = self.behavior.power_return {
            return Ok(value);
        }
        if !self.available().contains(&state) {
            return Ok(2);
        }
        let is_open = self.behavior.session_open || self.serial.is_open();
        let is_redirected = is_open && self.redirection != REDIRECTION_OFF;
        if is_redirected && matches!(state, 5 | 8 | 12) {
            return Ok(if self.behavior.refuses_silently { 0 } else { 2 });
        }
        if self.behavior.lies {
            return Ok(0);
        }
        self.shown = (self.power, self.behavior.late_readings);
        match state {
            ON | 5 | 10 | 14 => {
                self.power = ON;
                self.boot();
            }
            8 | 12 => self.power = OFF,
            other => self.power = other,
        }
        if let Err(value) = self.control(state) {
            return Ok(value);
        }
        if self.behavior.loses_answers { Err(Executed::Cut) } else { Ok(0) }
    }

    /// Passes an executed power request to the machine. An internal error is the return value 4.
    fn control(&self, state: u32) -> Result<(), u32> {
        let Some(chassis) = &self.chassis else { return Ok(()) };
        let boot = match self.boots.last().map(String::as_str) {
            Some("PXE Boot") => BootSource::Network,
            Some("Hard-drive Boot") => BootSource::Disk,
            _ => BootSource::Default,
        };
        let action = match state {
            ON => ChassisAction::On(boot),
            5 => ChassisAction::Cycle(boot),
            10 | 14 => ChassisAction::Reset(boot),
            12 => ChassisAction::SoftOff,
            _ => ChassisAction::Off,
        };
        chassis.control(action).map_err(|_| 4)
    }

    /// Boots the machine and uses the boot options up.
    fn boot(&mut self) {
        let is_setup = self.boot_setting("BIOSSetup") == "true";
        let device = match (self.is_next, is_setup, self.source.take()) {
            (true, true, _) => "setup".to_owned(),
            (true, false, Some(source)) if source == HTTPS_SOURCE => {
                self.boot_url.take().unwrap_or_else(|| "default".to_owned())
            }
            (true, false, Some(source)) => source.replace("Intel(r) AMT: Force ", ""),
            _ => "default".to_owned(),
        };
        self.boots.push(device);
        self.is_next = false;
        self.boot_url = None;
        self.set_boot_setting("BIOSSetup", "false");
        self.set_boot_setting("OptionsCleared", "true");
    }
}
