//! Driver of IPMI: converts each action to the requests of the crate `ipmi`.

use std::sync::Arc;
use std::time::Duration;

use ipmi::command::sel::SelRecord;
use ipmi::{BootRequest, BootTarget, Ipmi, Line, PowerRequest};
use jiff::Timestamp;
use tokio::io::DuplexStream;

use crate::{
    Address, BootControl, BootDevice, BootOverride, Capabilities, Driver, Endpoint, Error, Feature,
    LogEntry, Pending, Power, PowerAction, Sensor, SensorState,
};

/// Boot devices, and their names in IPMI.
const DEVICES: [(BootDevice, BootTarget); 5] = [
    (BootDevice::Pxe, BootTarget::Pxe),
    (BootDevice::Disk, BootTarget::Disk),
    (BootDevice::Bios, BootTarget::Setup),
    (BootDevice::Cdrom, BootTarget::Cdrom),
    (BootDevice::Safe, BootTarget::SafeMode),
];

/// Driver of one machine by IPMI.
#[derive(Debug)]
pub struct IpmiLan {
    device: Ipmi,
    address: Address,
}

impl IpmiLan {
    pub(crate) fn new(line: Arc<Line>, endpoint: Endpoint) -> Self {
        let cipher_suite = endpoint.cipher_suite();
        let Endpoint { address, credentials, .. } = endpoint;
        let endpoint = ipmi::Endpoint {
            address: (&address).into(),
            credentials: ipmi::Credentials {
                username: credentials.username,
                password: credentials.password,
            },
            cipher_suite,
        };
        Self { device: Ipmi::new(line, endpoint), address }
    }

    /// Returns the BMC, for requests that [`Driver`] does not have.
    pub fn device(&self) -> &Ipmi {
        &self.device
    }

    async fn read_power(&self) -> Result<Power, Error> {
        Ok(if self.device.is_on().await? { Power::On } else { Power::Off })
    }

    async fn change_power(&self, action: PowerAction) -> Result<(), Error> {
        let request = match action {
            PowerAction::On => PowerRequest::On,
            PowerAction::Off => PowerRequest::Off,
            PowerAction::Soft => PowerRequest::Soft,
            PowerAction::Cycle => PowerRequest::Cycle,
            PowerAction::Reset => PowerRequest::Reset,
        };
        self.device.set_power(request).await.map_err(|error| match error {
            ipmi::Error::Unconfirmed { source, .. } => {
                Error::Ipmi(source).of_unconfirmed(action, &self.address)
            }
            error => error.into(),
        })
    }

    async fn change_boot_device(&self, boot: BootOverride) -> Result<(), Error> {
        let BootOverride { device, persistent, efi } = boot;
        let Some((_, target)) = DEVICES.iter().find(|(known, _)| *known == device) else {
            let reason = "IPMI does not have this boot device";
            return Err(Error::BootDevice { driver: self.name(), device, reason });
        };
        Ok(self.device.set_boot(BootRequest { target: *target, persistent, efi }).await?)
    }

    async fn read_boot_device(&self) -> Result<Option<BootOverride>, Error> {
        let found = self.device.boot_flags().await?.in_force();
        Ok(found.and_then(|BootRequest { target, persistent, efi }| {
            let (device, _) = DEVICES.iter().find(|(_, known)| *known == target)?;
            Some(BootOverride { device: *device, persistent, efi })
        }))
    }

    async fn read_sensors(&self) -> Result<Vec<Sensor>, Error> {
        let found = self.device.sensors().await?;
        let sensors = found.into_iter().map(|found| Sensor {
            name: found.name,
            value: found.value,
            unit: found.unit.to_owned(),
            state: match found.state {
                ipmi::SensorState::Ok => SensorState::Ok,
                ipmi::SensorState::Warning => SensorState::Warning,
                ipmi::SensorState::Critical => SensorState::Critical,
                ipmi::SensorState::Unknown => SensorState::Unknown,
            },
        });
        Ok(sensors.collect())
    }

    async fn read_events(&self) -> Result<Vec<LogEntry>, Error> {
        let found = self.device.events(LogEntry::LIMIT).await?;
        Ok(found.into_iter().map(entry).collect())
    }
}

fn entry(record: SelRecord) -> LogEntry {
    LogEntry {
        id: record.id.to_string(),
        time: record.time.and_then(|time| Timestamp::from_second(time.into()).ok()),
        message: record.content.to_string(),
    }
}

impl Driver for IpmiLan {
    fn name(&self) -> &'static str {
        "ipmi"
    }

    fn capabilities(&self) -> Capabilities {
        let weakness = self.device.weakness();
        let mut features = vec![Feature::Identify, Feature::Sensors, Feature::Events];
        if weakness.is_none() {
            // IPMI 1.5 has no serial-over-LAN.
            features.push(Feature::Console);
        }
        let power = Capabilities::ALL_POWER;
        Capabilities { power, boot: BootControl::Always, features, missing: Vec::new(), weakness }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(self.read_power())
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

    fn identify(&self, time: Duration) -> Pending<'_, ()> {
        Box::pin(async move { Ok(self.device.identify(time).await?) })
    }

    fn sensors(&self) -> Pending<'_, Vec<Sensor>> {
        Box::pin(self.read_sensors())
    }

    fn events(&self) -> Pending<'_, Vec<LogEntry>> {
        Box::pin(self.read_events())
    }

    fn console(&self) -> Pending<'_, DuplexStream> {
        Box::pin(async { Ok(self.device.console().await?) })
    }
}
