//! Inventory, sensors and event log, as far as the resources describe them.

use jiff::Timestamp;
use serde_json::Value;

use crate::Document;
use crate::document::{number, text};

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;
/// Maximum plausible memory, in GiB.
const MEMORY_GIB_MAX: f64 = 1_048_576.0;
/// Maximum processors that are listed by their number.
const PROCESSORS_MAX: f64 = 64.0;
/// Minimum capacity of a disk, in bytes: some BMCs list their virtual USB devices of up to 1 GiB as
/// devices of the machine.
const DISK_BYTES_MIN: f64 = 4e9;
/// Maximum plausible capacity of a disk, in bytes.
const DISK_BYTES_MAX: f64 = 1e16;
/// Identifier of the interface to the BMC itself (schema HostInterface), which leads to no network.
const TO_MANAGER: &str = "ToManager";
/// Earliest second of a log entry that is a real time: 2001-01-01. Before, the clock was not set.
const CLOCK_SET: i64 = 978_307_200;

/// Inventory of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// UUID of the machine in lower case; empty means unknown.
    pub uuid: String,
    /// Manufacturer of the machine; empty means unknown.
    pub manufacturer: String,
    /// Model of the machine; empty means unknown.
    pub model: String,
    /// Serial number of the machine; empty means unknown.
    pub serial: String,
    /// Version of the machine's firmware; empty means unknown.
    pub firmware: String,
    /// Model and version of the BMC's firmware; empty means unknown.
    pub bmc_firmware: String,
    /// Names of the processors.
    pub processors: Vec<String>,
    /// Memory in bytes; 0 means unknown.
    pub memory_bytes: u64,
    /// Capacity of each disk in bytes, in the order of the service; empty means unknown.
    pub disk_bytes: Vec<u64>,
    /// MAC addresses in lower case with colons.
    pub macs: Vec<String>,
}

impl Inventory {
    /// Reads the inventory from the system, its BMC, its processors and its network interfaces. The
    /// disks are other resources; see [`disk_bytes`].
    pub fn read(
        system: &Document,
        manager: Option<&Document>,
        processors: &[Document],
        interfaces: &[Document],
    ) -> Self {
        let field = |pointer: &str| system.text(pointer).unwrap_or_default().to_owned();
        let bmc = manager.map(|manager| {
            let version = manager.text("/FirmwareVersion").unwrap_or_default();
            // The version of some BMCs has the model in it: "iLO 5 v3.11".
            let model = manager.text("/Model").filter(|model| !version.starts_with(model));
            [model.unwrap_or_default(), version].join(" ").trim().to_owned()
        });
        let gib = system.number("/MemorySummary/TotalSystemMemoryGiB").unwrap_or_default();
        Self {
            uuid: field("/UUID").to_ascii_lowercase(),
            manufacturer: field("/Manufacturer"),
            model: field("/Model"),
            serial: field("/SerialNumber"),
            firmware: field("/BiosVersion"),
            bmc_firmware: bmc.unwrap_or_default(),
            processors: processor_names(system, processors),
            memory_bytes: (gib.clamp(0.0, MEMORY_GIB_MAX) * GIB) as u64,
            disk_bytes: Vec::new(),
            macs: macs(interfaces),
        }
    }
}

fn processor_names(system: &Document, processors: &[Document]) -> Vec<String> {
    let is_cpu = |it: &&Document| it.text("/ProcessorType").is_none_or(|kind| kind == "CPU");
    let is_there = |it: &&Document| it.text("/Status/State") != Some("Absent");
    let present = processors.iter().filter(is_cpu).filter(is_there);
    let names: Vec<String> =
        present.filter_map(|it| it.text("/Model")).map(str::to_owned).collect();
    if !names.is_empty() {
        return names;
    }
    let Some(model) = system.text("/ProcessorSummary/Model") else { return Vec::new() };
    let count = system.number("/ProcessorSummary/Count").unwrap_or(1.0);
    vec![model.to_owned(); count.clamp(1.0, PROCESSORS_MAX) as usize]
}

fn macs(interfaces: &[Document]) -> Vec<String> {
    let mut macs: Vec<String> = interfaces
        .iter()
        .filter(|it| it.text("/Id") != Some(TO_MANAGER))
        .filter_map(|it| it.text("/PermanentMACAddress").or(it.text("/MACAddress")))
        .filter_map(|mac| mac.replace('-', ":").parse::<stdx::MacAddr>().ok())
        .map(|mac| mac.to_string())
        .collect();
    macs.sort();
    macs.dedup();
    macs
}

/// Returns the capacity of a resource `Drive`, or of a device of `SimpleStorage`; `None` for an
/// empty bay, for a capacity that is not stated, and for what is too small for a disk.
pub fn disk_bytes(json: &Value) -> Option<u64> {
    let is_there = text(json, "/Status/State") != Some("Absent");
    let bytes = number(json, "/CapacityBytes").filter(|_| is_there)?;
    (DISK_BYTES_MIN..=DISK_BYTES_MAX).contains(&bytes).then_some(bytes as u64)
}

/// Value of one sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Name that the service gives to the sensor.
    pub name: String,
    /// Value in `unit`; `None` without a value at this time.
    pub value: Option<f64>,
    /// Unit of the value: `C`, `V`, `W`, `A`, `RPM`, `%`, or as the service writes it.
    pub unit: String,
    /// Health that the service derives from its thresholds: `OK`, `Warning`, `Critical`.
    pub health: Option<String>,
}

fn reading(json: &Value, value: &str, unit: &str) -> Option<Reading> {
    named(json, None, value, unit)
}

/// Reads one sensor; `None` if it is absent, or has neither a name nor the default.
fn named(json: &Value, default: Option<&str>, value: &str, unit: &str) -> Option<Reading> {
    if text(json, "/Status/State") == Some("Absent") {
        return None;
    }
    // A number as identifier says nothing about the place of the sensor.
    let id = text(json, "/MemberId").filter(|id| id.parse::<u64>().is_err());
    let name = text(json, "/Name").or(text(json, "/FanName")).or(id).or(default)?;
    let unit = match unit {
        "Cel" => "C",
        "{rev}/min" => "RPM",
        "Percent" => "%",
        unit => unit,
    };
    let health = text(json, "/Status/Health").map(str::to_owned);
    let (name, unit) = (name.to_owned(), unit.to_owned());
    Some(Reading { name, value: number(json, value), unit, health })
}

/// Returns the temperatures and fans of a resource `Thermal`.
pub fn thermal(document: &Document) -> Vec<Reading> {
    let temperatures = document.items("/Temperatures").into_iter();
    let temperatures = temperatures.filter_map(|it| reading(it, "/ReadingCelsius", "C"));
    let fans = document.items("/Fans").into_iter().filter_map(|it| {
        let unit = text(it, "/ReadingUnits").unwrap_or("RPM");
        reading(it, "/Reading", unit)
    });
    temperatures.chain(fans).collect()
}

/// Returns the voltages and the consumption of a resource `Power`.
pub fn electrical(document: &Document) -> Vec<Reading> {
    let voltages = document.items("/Voltages").into_iter();
    let voltages = voltages.filter_map(|it| reading(it, "/ReadingVolts", "V"));
    // Some services give the consumption of the machine no name.
    let control = document.items("/PowerControl").into_iter();
    let control = control.filter_map(|it| named(it, Some("Power"), "/PowerConsumedWatts", "W"));
    voltages.chain(control).collect()
}

/// Returns the reading of a resource `Sensor`.
pub fn sensor(json: &Value) -> Option<Reading> {
    reading(json, "/Reading", text(json, "/ReadingUnits").unwrap_or_default())
}

/// Entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Identifier of the entry.
    pub id: String,
    /// Time by the clock of the BMC; `None` if the clock was not set.
    pub time: Option<Timestamp>,
    /// Description as the service writes it.
    pub message: String,
}

/// Reads one entry; `None` for an element without a message.
pub fn log_record(json: &Value) -> Option<LogRecord> {
    let message = text(json, "/Message").or(text(json, "/MessageId"))?;
    let time = text(json, "/Created").or(text(json, "/EventTimestamp"));
    let time = time.and_then(|text| text.parse::<Timestamp>().ok());
    Some(LogRecord {
        id: text(json, "/Id").unwrap_or_default().to_owned(),
        time: time.filter(|time| time.as_second() > CLOCK_SET),
        message: crate::reason::brief(message),
    })
}

/// Sorts the entries of a log, oldest first, and keeps the newest `limit`. Services list entries in
/// either order.
pub fn newest(mut records: Vec<LogRecord>, limit: usize) -> Vec<LogRecord> {
    records.sort_by_key(|record| (record.time, record.id.parse::<u64>().unwrap_or_default()));
    let surplus = records.len().saturating_sub(limit);
    records.split_off(surplus)
}

/// Identifiers of logs about the hardware, best first.
const LOGS: [&str; 6] = ["SEL", "IML", "EVENTLOG", "PLATFORMLOG", "LOG1", "IEL"];

/// Sorts logs so that those about the hardware are first.
pub fn sort_logs(logs: &mut [String]) {
    logs.sort_by_key(|path| {
        let name = crate::document::last_segment(path).to_ascii_uppercase();
        LOGS.iter().position(|log| name == *log).unwrap_or(LOGS.len())
    });
}

#[cfg(test)]
mod tests;
