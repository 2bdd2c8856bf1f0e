//! Identity and inventory of a machine, which AMT reports also while the machine is off.

use std::fmt;

use stdx::{hex, unhex};

use crate::message::Element;

/// Value of `OptInRequired` that means consent for every session.
const CONSENT_ALWAYS: u32 = u32::MAX;
/// Values of `LinkPolicy` that keep the network on while the machine is off: on mains, on battery.
const LINK_WHEN_OFF: [u32; 2] = [14, 224];

/// State of the activation of AMT (AMT_SetupAndConfigurationService).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provisioning {
    /// 0 before, 1 during, 2 after the activation.
    pub state: u32,
    /// 1 admin control mode, 4 client control mode.
    pub mode: Option<u32>,
}

impl fmt::Display for Provisioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state, self.mode) {
            (0, _) => f.write_str("not activated"),
            (1, _) => f.write_str("activation in progress"),
            (2, Some(1)) => f.write_str("activated, admin control mode"),
            (2, Some(4)) => f.write_str("activated, client control mode"),
            (2, _) => f.write_str("activated"),
            (state, _) => write!(f, "unknown provisioning state {state}"),
        }
    }
}

/// Consent of a user at the machine's screen, which the firmware requires (IPS_OptInService).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consent {
    /// 0 never, 1 for KVM, 4294967295 for every session.
    pub required: u32,
    /// 0 not started, 1 requested, 2 displayed, 3 received, 4 in session.
    pub state: u32,
}

impl Consent {
    /// Reads the instance; `None` if a number is missing or not valid.
    pub fn read(instance: &Element) -> Option<Self> {
        let number = |name| instance.number::<u32>(name).ok().flatten();
        Some(Self { required: number("OptInRequired")?, state: number("OptInState")? })
    }

    /// Returns true if the firmware refuses control until a user consents.
    pub fn is_missing(self) -> bool {
        self.required == CONSENT_ALWAYS && !matches!(self.state, 3 | 4)
    }
}

/// Identity of a machine. A value is `None` if the firmware does not report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// System UUID as SMBIOS and DHCP option 97 show it, in lower case.
    pub uuid: Option<String>,
    /// Manufacturer of the machine.
    pub manufacturer: Option<String>,
    /// Model of the machine.
    pub model: Option<String>,
    /// Serial number of the machine.
    pub serial: Option<String>,
    /// Version of AMT, such as `12.0.67`.
    pub amt_version: Option<String>,
    /// Version of the firmware (BIOS).
    pub bios_version: Option<String>,
    /// State of the activation.
    pub provisioning: Option<Provisioning>,
    /// Host name in the settings of AMT.
    pub host_name: Option<String>,
    /// Digest realm, fixed for one activation.
    pub realm: Option<String>,
    /// MAC address of the wired port, lower case with colons.
    pub mac: Option<String>,
    /// True if AMT answers while the machine is off.
    pub answers_when_off: Option<bool>,
    /// Consent that the firmware requires.
    pub consent: Option<Consent>,
}

/// Instances that an [`Identity`] is read from; `None` for a class that the firmware lacks.
#[derive(Debug, Clone, Default)]
pub struct IdentityParts {
    /// The only instance of CIM_ComputerSystemPackage.
    pub package: Option<Element>,
    /// The only instance of CIM_Chassis.
    pub chassis: Option<Element>,
    /// All instances of CIM_SoftwareIdentity.
    pub software: Vec<Element>,
    /// The only instance of CIM_BIOSElement.
    pub bios: Option<Element>,
    /// The only instance of AMT_SetupAndConfigurationService.
    pub setup: Option<Element>,
    /// The only instance of AMT_GeneralSettings.
    pub general: Option<Element>,
    /// AMT_EthernetPortSettings of the wired port.
    pub port: Option<Element>,
    /// The only instance of IPS_OptInService.
    pub consent: Option<Element>,
}

impl Identity {
    /// Reads the identity. Values that are not valid are left out.
    pub fn read(parts: &IdentityParts) -> Self {
        let chassis = |name| text(parts.chassis.as_ref(), name);
        let is_amt = |item: &&Element| item.text_of("InstanceID") == Some("AMT");
        let guid = text(parts.package.as_ref(), "PlatformGUID");
        let policy = parts.port.as_ref().map(|port| port.numbers::<u32>("LinkPolicy"));
        let policy = policy.and_then(Result::ok).filter(|policy| !policy.is_empty());
        Self {
            uuid: guid.and_then(|guid| system_uuid(&guid)),
            manufacturer: chassis("Manufacturer"),
            model: chassis("Model"),
            serial: chassis("SerialNumber"),
            amt_version: text(parts.software.iter().find(is_amt), "VersionString"),
            bios_version: text(parts.bios.as_ref(), "Version"),
            provisioning: parts.setup.as_ref().and_then(|setup| {
                let mode = setup.number("ProvisioningMode").ok().flatten();
                Some(Provisioning { state: setup.number("ProvisioningState").ok()??, mode })
            }),
            host_name: text(parts.general.as_ref(), "HostName"),
            realm: text(parts.general.as_ref(), "DigestRealm"),
            mac: text(parts.port.as_ref(), "MACAddress")
                .map(|mac| mac.replace('-', ":").to_ascii_lowercase()),
            answers_when_off: policy
                .map(|policy| LINK_WHEN_OFF.iter().any(|value| policy.contains(value))),
            consent: parts.consent.as_ref().and_then(Consent::read),
        }
    }
}

fn text(element: Option<&Element>, name: &str) -> Option<String> {
    element?.text_of(name).map(str::to_owned)
}

/// Converts `PlatformGUID` to the form of SMBIOS: the first three groups are little-endian. A
/// placeholder of equal bytes is not a UUID.
pub fn system_uuid(guid: &str) -> Option<String> {
    let mut bytes: [u8; 16] = unhex(&guid.replace('-', ""))?.try_into().ok()?;
    if bytes.iter().all(|byte| *byte == bytes[0]) {
        return None;
    }
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    let digits = hex(&bytes);
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
    Some(format!("{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..]))
}

/// Memory module, an instance of CIM_PhysicalMemory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryModule {
    /// Label of the slot.
    pub bank: Option<String>,
    /// Capacity in bytes; never 0.
    pub bytes: u64,
    /// Part number of the manufacturer.
    pub part: Option<String>,
    /// Serial number of the module.
    pub serial: Option<String>,
}

/// Hardware of a machine, as the firmware reported it at the last boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Names of the processors.
    pub processors: Vec<String>,
    /// Memory modules with a capacity.
    pub memory: Vec<MemoryModule>,
    /// Sizes of the disks in bytes. AMT reports neither model nor serial number.
    pub disks: Vec<u64>,
}

impl Inventory {
    /// Reads all instances of CIM_Chip, CIM_PhysicalMemory and CIM_MediaAccessDevice.
    pub fn read(chips: &[Element], modules: &[Element], disks: &[Element]) -> Self {
        let is_processor = |chip: &&Element| {
            chip.text_of("ElementName").is_some_and(|name| name.contains("Processor"))
        };
        let module = |module: &Element| MemoryModule {
            bank: text(Some(module), "BankLabel"),
            bytes: module.number("Capacity").ok().flatten().unwrap_or(0),
            part: text(Some(module), "PartNumber"),
            serial: text(Some(module), "SerialNumber"),
        };
        // MaxMediaSize is in units of 1,000 bytes.
        let size = |disk: &Element| {
            let size: Option<u64> = disk.number("MaxMediaSize").ok().flatten();
            size.and_then(|size| size.checked_mul(1000)).filter(|size| *size > 0)
        };
        let processors = chips.iter().filter(is_processor);
        Self {
            processors: processors.filter_map(|chip| text(Some(chip), "Version")).collect(),
            memory: modules.iter().map(module).filter(|module| module.bytes > 0).collect(),
            disks: disks.iter().filter_map(size).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
