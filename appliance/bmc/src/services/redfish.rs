//! Driver of Redfish: converts each action to the requests of the crate `redfish`.

use std::sync::Arc;
use std::time::Duration;

use redfish::{BootRequest, BootTarget, Line, PowerRequest, PowerState, Redfish};

use crate::{
    Address, BootControl, BootDevice, BootOverride, Capabilities, Driver, Endpoint, Error, Feature,
    HardwareInventory, LogEntry, Pending, Power, PowerAction, RedfishOptions, Sensor, SensorState,
};

/// Name of the driver for display.
const NAME: &str = "redfish";
/// Maximum time for which the identification LED is on.
const IDENTIFY_MAX: Duration = Duration::from_secs(3600);
/// Reason of a service without UEFI HTTP boot.
const NO_HTTP_BOOT: &str = "the BMC offers no boot from a URL (UefiHttp with HttpBootUri)";
/// Power actions of services without one of the resets.
const WITHOUT_SOFT: &[PowerAction] =
    &[PowerAction::On, PowerAction::Off, PowerAction::Cycle, PowerAction::Reset];
const WITHOUT_RESET: &[PowerAction] =
    &[PowerAction::On, PowerAction::Off, PowerAction::Soft, PowerAction::Cycle];
const WITHOUT_BOTH: &[PowerAction] = &[PowerAction::On, PowerAction::Off, PowerAction::Cycle];

/// Driver of one machine by Redfish.
#[derive(Debug)]
pub(crate) struct RedfishDriver {
    service: Redfish,
    address: Address,
}

impl RedfishDriver {
    pub fn new(line: Arc<Line>, endpoint: Endpoint, options: RedfishOptions) -> Self {
        let Endpoint { address, credentials, .. } = endpoint;
        let login = redfish::Login {
            username: credentials.username,
            password: credentials.password,
            is_basic: options.is_basic,
        };
        let endpoint = redfish::Endpoint {
            host: address.host.clone(),
            port: address.port,
            security: options.security,
            login,
            system: options.system,
        };
        Self { service: Redfish::new(line, endpoint), address }
    }

    fn error(&self, source: redfish::Error) -> Error {
        Error::Redfish { address: self.address.clone(), source: Box::new(source) }
    }

    async fn change_power(&self, action: PowerAction) -> Result<(), Error> {
        let done = self.service.set_power(request(action)).await;
        done.map_err(|source| {
            let may_be_done = matches!(source, redfish::Error::Unconfirmed { .. });
            let error = self.error(source);
            if may_be_done { error.of_unconfirmed(action, &self.address) } else { error }
        })
    }

    async fn change_boot_device(&self, boot: BootOverride) -> Result<(), Error> {
        let BootOverride { device, persistent, efi } = boot;
        let target = match device {
            BootDevice::Pxe => BootTarget::Pxe,
            BootDevice::Disk => BootTarget::Disk,
            BootDevice::Bios => BootTarget::Setup,
            BootDevice::Cdrom => BootTarget::Cdrom,
            BootDevice::Safe => {
                let reason = "Redfish has no safe mode of the operating system";
                return Err(Error::BootDevice { driver: NAME, device, reason });
            }
        };
        let set = self.service.set_boot(&BootRequest { target, persistent, efi }).await;
        set.map_err(|source| self.error(source))
    }

    async fn read_boot_device(&self) -> Result<Option<BootOverride>, Error> {
        let found = self.service.boot().await.map_err(|source| self.error(source))?;
        Ok(found.and_then(|found| {
            let device = match found.target {
                BootTarget::Pxe => BootDevice::Pxe,
                BootTarget::Disk => BootDevice::Disk,
                BootTarget::Setup => BootDevice::Bios,
                BootTarget::Cdrom => BootDevice::Cdrom,
                // No device of the trait boots from a URL.
                BootTarget::Http(_) => return None,
            };
            Some(BootOverride { device, persistent: found.persistent, efi: found.efi })
        }))
    }

    async fn change_http_boot(&self, url: &str) -> Result<(), Error> {
        let target = BootTarget::Http(url.to_owned());
        let request = BootRequest { target, persistent: false, efi: true };
        self.service.set_boot(&request).await.map_err(|source| self.error(source))
    }

    async fn light(&self, time: Duration) -> Result<(), Error> {
        let lit = self.service.identify(!time.is_zero()).await;
        lit.map_err(|source| self.error(source))?;
        if !time.is_zero() {
            // Redfish has no time limit for the LED.
            let (service, time) = (self.service.clone(), time.min(IDENTIFY_MAX));
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                if let Err(error) = service.identify(false).await {
                    tracing::warn!(error = %stdx::chain(&error), "identification LED stays on");
                }
            });
        }
        Ok(())
    }

    async fn read_sensors(&self) -> Result<Vec<Sensor>, Error> {
        let found = self.service.sensors().await.map_err(|source| self.error(source))?;
        let sensors = found.into_iter().map(|found| Sensor {
            name: found.name,
            value: found.value,
            unit: found.unit,
            state: match found.health.as_deref() {
                Some("OK") => SensorState::Ok,
                Some("Warning") => SensorState::Warning,
                Some("Critical") => SensorState::Critical,
                _ => SensorState::Unknown,
            },
        });
        Ok(sensors.collect())
    }

    async fn read_events(&self) -> Result<Vec<LogEntry>, Error> {
        let found = self.service.events(LogEntry::LIMIT).await;
        let found = found.map_err(|source| self.error(source))?.into_iter();
        Ok(found
            .map(|entry| LogEntry { id: entry.id, time: entry.time, message: entry.message })
            .collect())
    }

    async fn read_inventory(&self) -> Result<HardwareInventory, Error> {
        let found = self.service.inventory().await.map_err(|source| self.error(source))?;
        Ok(HardwareInventory {
            uuid: found.uuid,
            manufacturer: found.manufacturer,
            model: found.model,
            serial: found.serial,
            firmware: found.firmware,
            bmc_firmware: found.bmc_firmware,
            processors: found.processors,
            memory_bytes: found.memory_bytes,
            disk_bytes: found.disk_bytes,
            macs: found.macs,
        })
    }
}

fn request(action: PowerAction) -> PowerRequest {
    match action {
        PowerAction::On => PowerRequest::On,
        PowerAction::Off => PowerRequest::Off,
        PowerAction::Soft => PowerRequest::Soft,
        PowerAction::Cycle => PowerRequest::Cycle,
        PowerAction::Reset => PowerRequest::Reset,
    }
}

impl Driver for RedfishDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let Some(learned) = self.service.learned() else {
            // Before the first contact, a request shows what the service has.
            let power = Capabilities::ALL_POWER;
            return Capabilities {
                power,
                boot: BootControl::Always,
                features: Vec::new(),
                missing: Vec::new(),
                weakness: None,
            };
        };
        let offers = |request: PowerRequest| request.is_offered(&learned.reset_types);
        let power = match (offers(PowerRequest::Soft), offers(PowerRequest::Reset)) {
            (true, true) => Capabilities::ALL_POWER,
            (false, true) => WITHOUT_SOFT,
            (true, false) => WITHOUT_RESET,
            (false, false) => WITHOUT_BOTH,
        };
        let features = [
            (learned.http_boot, Feature::HttpBoot),
            (learned.media, Feature::VirtualMedia),
            (learned.identify, Feature::Identify),
            (learned.sensors, Feature::Sensors),
            (learned.events, Feature::Events),
            (true, Feature::Inventory),
        ];
        let missing = (!learned.http_boot).then_some((Feature::HttpBoot, NO_HTTP_BOOT));
        Capabilities {
            power,
            boot: if learned.boot_always { BootControl::Always } else { BootControl::Once },
            features: features.into_iter().filter(|(has, _)| *has).map(|(_, it)| it).collect(),
            missing: missing.into_iter().collect(),
            weakness: None,
        }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(async {
            let state = self.service.power().await.map_err(|source| self.error(source))?;
            Ok(match state {
                PowerState::On => Power::On,
                PowerState::Off => Power::Off,
                PowerState::Changing | PowerState::Unknown => Power::Unknown,
            })
        })
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        Box::pin(self.change_power(action))
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        Box::pin(self.change_boot_device(boot))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(self.read_boot_device())
    }

    fn set_http_boot<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        Box::pin(self.change_http_boot(url))
    }

    fn insert_media<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            self.service.insert_media(url).await.map_err(|source| self.error(source))
        })
    }

    fn eject_media(&self) -> Pending<'_, ()> {
        Box::pin(async { self.service.eject_media().await.map_err(|source| self.error(source)) })
    }

    fn identify(&self, time: Duration) -> Pending<'_, ()> {
        Box::pin(self.light(time))
    }

    fn sensors(&self) -> Pending<'_, Vec<Sensor>> {
        Box::pin(self.read_sensors())
    }

    fn events(&self) -> Pending<'_, Vec<LogEntry>> {
        Box::pin(self.read_events())
    }

    fn inventory(&self) -> Pending<'_, HardwareInventory> {
        Box::pin(self.read_inventory())
    }
}
