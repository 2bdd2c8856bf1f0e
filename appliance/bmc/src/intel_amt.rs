//! Driver of Intel AMT: converts each action to the requests of the crate `amt`.

use std::sync::Arc;

use amt::event_log::Record;
use amt::{Amt, BootTarget, HostState, Identity, Line, Login, PowerRequest};
use ipmi::command::sel::SensorEvent;
use jiff::Timestamp;
use tokio::io::DuplexStream;

use crate::{
    Address, AmtOptions, BootControl, BootDevice, BootOverride, Capabilities, Driver, Endpoint,
    Error, Feature, HardwareInventory, LogEntry, Pending, Power, PowerAction,
};

/// Name of the driver for display.
const NAME: &str = "amt";

/// Boot devices, and their names in AMT.
const DEVICES: [(BootDevice, BootTarget); 5] = [
    (BootDevice::Pxe, BootTarget::Pxe),
    (BootDevice::Disk, BootTarget::Disk),
    (BootDevice::Bios, BootTarget::Setup),
    (BootDevice::Cdrom, BootTarget::Cdrom),
    (BootDevice::Safe, BootTarget::SafeMode),
];

/// Driver of one machine by Intel AMT.
#[derive(Debug)]
pub struct IntelAmt {
    device: Amt,
    address: Address,
}

impl IntelAmt {
    pub(crate) fn new(line: Arc<Line>, endpoint: Endpoint, options: AmtOptions) -> Self {
        let Endpoint { address, credentials, .. } = endpoint;
        let device = Amt::new(
            line,
            amt::Endpoint {
                host: address.host.clone(),
                port: Some(address.port),
                security: options.security,
                boot_root: options.boot_root,
                login: Login { username: credentials.username, password: credentials.password },
            },
        );
        Self { device, address }
    }

    /// Returns the fingerprint of the TLS certificate; `None` without TLS. The login is not sent.
    ///
    /// # Errors
    /// The machine does not respond, or has another certificate than expected.
    pub async fn fingerprint(&self) -> Result<Option<amt::Fingerprint>, Error> {
        self.device.fingerprint().await.map_err(|source| self.error(source))
    }

    fn error(&self, source: amt::Error) -> Error {
        Error::Amt { address: self.address.clone(), source: Box::new(source) }
    }

    /// Reads the identity of the machine and the state of AMT, such as its activation.
    ///
    /// # Errors
    /// The machine does not respond, or refuses the login.
    pub async fn identity(&self) -> Result<Identity, Error> {
        self.device.identity().await.map_err(|source| self.error(source))
    }

    async fn read_inventory(&self) -> Result<HardwareInventory, Error> {
        let identity = self.identity().await?;
        let parts = self.device.inventory().await.map_err(|source| self.error(source))?;
        let amt = identity.amt_version.map(|version| format!("Intel AMT {version}"));
        Ok(HardwareInventory {
            uuid: identity.uuid.unwrap_or_default(),
            manufacturer: identity.manufacturer.unwrap_or_default(),
            model: identity.model.unwrap_or_default(),
            serial: identity.serial.unwrap_or_default(),
            firmware: identity.bios_version.unwrap_or_default(),
            bmc_firmware: amt.unwrap_or_default(),
            processors: parts.processors,
            memory_bytes: parts.memory.iter().map(|module| module.bytes).sum(),
            disk_bytes: parts.disks,
            macs: identity.mac.into_iter().collect(),
        })
    }

    async fn read_events(&self) -> Result<Vec<LogEntry>, Error> {
        let found = self.device.events(LogEntry::LIMIT).await;
        let found = found.map_err(|source| self.error(source))?;
        // AMT does not number its records.
        Ok(found.iter().zip(1..).map(|(record, number)| entry(record, number)).collect())
    }

    async fn change_power(&self, action: PowerAction) -> Result<(), Error> {
        let request = match action {
            PowerAction::On => PowerRequest::On,
            PowerAction::Off => PowerRequest::Off,
            PowerAction::Soft => PowerRequest::Soft,
            PowerAction::Cycle => PowerRequest::Cycle,
            PowerAction::Reset => PowerRequest::Reset,
        };
        let done = self.device.set_power(request).await;
        done.map_err(|source| {
            let may_be_done = matches!(source, amt::Error::Unconfirmed { .. });
            let error = self.error(source);
            if may_be_done { error.of_unconfirmed(action, &self.address) } else { error }
        })
    }

    async fn change_boot_device(&self, boot: BootOverride) -> Result<(), Error> {
        if boot.persistent {
            let reason = "Intel AMT sets the boot device of the next boot only";
            return Err(Error::BootDevice { driver: NAME, device: boot.device, reason });
        }
        let Some((_, target)) = DEVICES.iter().find(|(device, _)| *device == boot.device) else {
            let reason = "Intel AMT does not have this boot device";
            return Err(Error::BootDevice { driver: NAME, device: boot.device, reason });
        };
        self.device.set_boot(*target).await.map_err(|source| self.error(source))
    }

    async fn next_boot_device(&self) -> Result<Option<BootOverride>, Error> {
        let next = self.device.boot().await.map_err(|source| self.error(source))?;
        let named = DEVICES.iter().find(|(_, target)| next == Some(*target));
        // The firmware's own settings select UEFI or legacy mode; AMT exists on UEFI machines.
        Ok(named.map(|(device, _)| BootOverride { device: *device, persistent: false, efi: true }))
    }
}

fn entry(record: &Record, number: u32) -> LogEntry {
    let Record { sensor_type, sensor, event_type, is_deasserted, offset, .. } = *record;
    let event = SensorEvent { sensor_type, sensor, event_type, is_deasserted, offset };
    let alarm = record.severity.alarm().map(|word| format!(", {word}"));
    let detail = record.detail().map(|words| format!(": {words}"));
    let time = Some(record.time).filter(|time| *time > 0);
    LogEntry {
        id: number.to_string(),
        time: time.and_then(|time| Timestamp::from_second(time.into()).ok()),
        message: format!("{event}{}{}", alarm.unwrap_or_default(), detail.unwrap_or_default()),
    }
}

impl Driver for IntelAmt {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let mut features = vec![Feature::Events, Feature::Inventory, Feature::Console];
        let mut missing = Vec::new();
        match self.device.https_boot() {
            Some(Ok(())) => features.insert(0, Feature::HttpBoot),
            Some(Err(reason)) => missing.push((Feature::HttpBoot, reason)),
            // The first answer of the machine shows it.
            None => {}
        }
        let (power, boot) = (Capabilities::ALL_POWER, BootControl::Once);
        Capabilities { power, boot, features, missing, weakness: None }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(async {
            let state = self.device.power().await.map_err(|source| self.error(source))?;
            Ok(match state {
                // A sleeping machine can resume its work at any time, so it is not off.
                HostState::On | HostState::Sleeping => Power::On,
                HostState::Off => Power::Off,
                HostState::Changing(_) | HostState::Unknown(_) => Power::Unknown,
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
        Box::pin(self.next_boot_device())
    }

    fn set_http_boot<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let set = self.device.set_https_boot(url).await;
            set.map_err(|source| self.error(source))
        })
    }

    fn events(&self) -> Pending<'_, Vec<LogEntry>> {
        Box::pin(self.read_events())
    }

    fn inventory(&self) -> Pending<'_, HardwareInventory> {
        Box::pin(self.read_inventory())
    }

    fn console(&self) -> Pending<'_, DuplexStream> {
        Box::pin(async { self.device.console().await.map_err(|source| self.error(source)) })
    }
}
