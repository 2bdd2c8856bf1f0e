//! Sensors, event log and inventory of a machine, as its BMC reports them.

use jiff::Timestamp;

/// Value of one sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensor {
    /// Name that the BMC gives to the sensor.
    pub name: String,
    /// Value in `unit`; `None` for a sensor without a value at this time.
    pub value: Option<f64>,
    /// Unit: `C`, `V`, `W`, `RPM`, `A`; empty for a discrete sensor.
    pub unit: String,
    /// State that the BMC derives from its thresholds, such as `ok`, `warning` or `critical`.
    pub state: SensorState,
}

/// State of a sensor by the thresholds of the BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SensorState {
    /// The value is within the thresholds.
    Ok,
    /// The value passed a non-critical threshold.
    Warning,
    /// The value passed a critical threshold.
    Critical,
    /// The BMC reports no state.
    Unknown,
}

/// Entry of the event log of a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Number or name of the entry in the log of the BMC.
    pub id: String,
    /// Time by the clock of the BMC; `None` if that clock was not set.
    pub time: Option<Timestamp>,
    /// Description as a sentence.
    pub message: String,
}

impl LogEntry {
    /// Maximum number of entries that a driver returns.
    pub const LIMIT: usize = 500;
}

/// Inventory of a machine, as far as its BMC knows it. Empty text means unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HardwareInventory {
    /// UUID of the machine as its firmware shows it (SMBIOS type 1), in lower case.
    pub uuid: String,
    /// Manufacturer of the machine.
    pub manufacturer: String,
    /// Model of the machine.
    pub model: String,
    /// Serial number of the machine.
    pub serial: String,
    /// Version of the machine's firmware (BIOS or UEFI).
    pub firmware: String,
    /// Manufacturer and version of the BMC's firmware.
    pub bmc_firmware: String,
    /// Names of the processors.
    pub processors: Vec<String>,
    /// Memory in bytes; 0 means unknown.
    pub memory_bytes: u64,
    /// Sizes of the disks in bytes.
    pub disk_bytes: Vec<u64>,
    /// MAC addresses of the machine, in lower case with colons.
    pub macs: Vec<String>,
}
