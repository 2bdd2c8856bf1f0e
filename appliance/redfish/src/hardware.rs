//! Inventory, sensors and event log, as far as the resources describe them.

use jiff::Timestamp;
use serde_json::Value;

use crate::Document;
use crate::document::{number, text};

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;
/// Maximum memory that is believed, in GiB.
const MEMORY_GIB_MAX: f64 = 1_048_576.0;
/// Maximum processors that are listed by their number.
const PROCESSORS_MAX: f64 = 64.0;
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
    /// MAC addresses in lower case with colons.
    pub macs: Vec<String>,
}

impl Inventory {
    /// Reads the inventory from the system, its BMC, its processors and its network interfaces.
    pub fn read(
        system: &Document,
        manager: Option<&Document>,
        processors: &[Document],
        interfaces: &[Document],
    ) -> Self {
        let field = |pointer: &str| system.text(pointer).unwrap_or_default().to_owned();
        let bmc = manager.map(|manager| {
            let words = [manager.text("/Model"), manager.text("/FirmwareVersion")];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
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
        .filter_map(|it| it.text("/PermanentMACAddress").or(it.text("/MACAddress")))
        .filter_map(|mac| mac.replace('-', ":").parse::<stdx::MacAddr>().ok())
        .map(|mac| mac.to_string())
        .collect();
    macs.sort();
    macs.dedup();
    macs
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
    if text(json, "/Status/State") == Some("Absent") {
        return None;
    }
    let name = text(json, "/Name").or(text(json, "/FanName")).or(text(json, "/MemberId"))?;
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
    let control = document.items("/PowerControl").into_iter();
    voltages.chain(control.filter_map(|it| reading(it, "/PowerConsumedWatts", "W"))).collect()
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

/// Returns the log about the hardware, else the first one.
pub fn preferred_log(logs: &[String]) -> Option<&String> {
    let rank = |path: &&String| {
        let name = crate::document::last_segment(path).to_ascii_uppercase();
        LOGS.iter().position(|log| name == *log).unwrap_or(LOGS.len())
    };
    logs.iter().min_by_key(rank)
}

#[cfg(test)]
mod tests;
