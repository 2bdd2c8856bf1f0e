//! Event log of the firmware (AMT_MessageLog): records of 21 bytes, newest first.
//!
//! Sensor types, event types and offsets are those of IPMI 2.0 (§42), as in the platform event
//! traps that the same firmware sends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::message::{Element, Malformed, brief};

/// Maximum records of one answer, which is also the size of the log (AMT 12).
pub const PAGE_RECORDS: usize = 390;
/// Length of a record in bytes.
const RECORD_LEN: usize = 21;
/// Sensor type of the firmware's progress (IPMI 2.0 table 42-3).
const FIRMWARE: u8 = 0x0F;
/// Sensor type of the security of the platform, and its state for a refused login.
const SECURITY: u8 = 0x06;
const LOGIN_REFUSED: u8 = 0x05;
/// First data byte of an event of AMT itself, not of the BIOS.
const OF_AMT: u8 = 0xAA;

/// Severity of an event (PET 1.0 table 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// State that is only monitored, without a judgment.
    Monitor,
    /// Information about a normal operation.
    Information,
    /// Return to the normal state.
    Ok,
    /// Deviation from the normal state, which is not critical.
    NonCritical,
    /// State that may damage hardware or data.
    Critical,
    /// State from which the machine cannot recover.
    NonRecoverable,
    /// Number without a meaning.
    Unspecified(u8),
}

impl Severity {
    fn of(number: u8) -> Self {
        match number {
            1 => Self::Monitor,
            2 => Self::Information,
            4 => Self::Ok,
            8 => Self::NonCritical,
            16 => Self::Critical,
            32 => Self::NonRecoverable,
            other => Self::Unspecified(other),
        }
    }

    /// Returns the word for a severity that needs attention; `None` for the others.
    pub fn alarm(self) -> Option<&'static str> {
        match self {
            Self::NonCritical => Some("warning"),
            Self::Critical => Some("critical"),
            Self::NonRecoverable => Some("non-recoverable"),
            Self::Monitor | Self::Information | Self::Ok | Self::Unspecified(_) => None,
        }
    }
}

/// Record of the event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Seconds since 1970 by the firmware's clock; 0 if the clock was not set.
    pub time: u32,
    /// Sensor type (IPMI 2.0 table 42-3).
    pub sensor_type: u8,
    /// Event/reading type code (IPMI 2.0 table 42-1), which gives the meaning of `offset`.
    pub event_type: u8,
    /// Number of the state, 0 to 15 (IPMI 2.0 tables 42-2 and 42-3).
    pub offset: u8,
    /// True if the state ended, false if it began.
    pub is_deasserted: bool,
    /// Severity of the event.
    pub severity: Severity,
    /// Number of the sensor; 255 if unspecified.
    pub sensor: u8,
    /// Event data, whose meaning depends on the sensor type.
    pub data: [u8; 8],
}

impl Record {
    /// Decodes a record. Every combination of bytes is a record.
    pub fn parse(bytes: [u8; RECORD_LEN]) -> Self {
        let [time @ .., _, sensor_type, event_type, state, _, severity, sensor, _, _] =
            *bytes.first_chunk::<13>().unwrap_or(&[0; 13]);
        let data = *bytes.last_chunk::<8>().unwrap_or(&[0; 8]);
        Self {
            time: u32::from_le_bytes(time),
            sensor_type,
            event_type: event_type & 0x7F,
            offset: state & 0x0F,
            is_deasserted: state & 0x80 != 0,
            severity: Severity::of(severity),
            sensor,
            data,
        }
    }

    /// Returns the details in the event data, as words; `None` for data without a known meaning.
    pub fn detail(&self) -> Option<String> {
        match (self.sensor_type, self.offset, self.data[0]) {
            (SECURITY, LOGIN_REFUSED, OF_AMT) => {
                let count = u16::from_le_bytes([self.data[1], self.data[2]]);
                Some(format!("{count} refused logins"))
            }
            (FIRMWARE, 0, _) => word(&FIRMWARE_ERRORS, self.data[1]),
            (FIRMWARE, 1 | 2, _) => word(&FIRMWARE_PROGRESS, self.data[1]),
            _ => None,
        }
    }
}

fn word(words: &[&str], number: u8) -> Option<String> {
    words.get(usize::from(number)).filter(|_| number > 0).map(|word| (*word).to_owned())
}

/// Errors of the firmware by their number (IPMI 2.0 table 42-3, type 0Fh, offset 00h).
const FIRMWARE_ERRORS: [&str; 14] = [
    "unspecified",
    "no memory installed",
    "no usable memory",
    "hard disk failure",
    "system board failure",
    "diskette failure",
    "hard disk controller failure",
    "keyboard failure",
    "boot medium not found",
    "video controller failure",
    "no video device",
    "firmware corrupted",
    "processor voltage mismatch",
    "processor speed mismatch",
];

/// Steps of the firmware by their number (IPMI 2.0 table 42-3, type 0Fh, offset 02h).
const FIRMWARE_PROGRESS: [&str; 26] = [
    "unspecified",
    "memory initialization",
    "hard disk initialization",
    "secondary processor initialization",
    "user authentication",
    "firmware setup",
    "USB configuration",
    "PCI configuration",
    "option ROM initialization",
    "video initialization",
    "cache initialization",
    "SM bus initialization",
    "keyboard controller initialization",
    "management controller initialization",
    "docking station attachment",
    "docking station enabled",
    "docking station ejection",
    "docking station disabled",
    "wake-up by the operating system",
    "start of the operating system",
    "mainboard initialization",
    "reserved",
    "floppy initialization",
    "keyboard test",
    "pointing device test",
    "processor initialization",
];

/// Answer of `GetRecords` of the class AMT_MessageLog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Records, newest first, without empty ones.
    pub records: Vec<Record>,
    /// Position of the next answer; `None` after the last record.
    pub next: Option<String>,
}

impl Page {
    /// Reads the output of `GetRecords`. A cleared log has empty records, which are left out.
    ///
    /// # Errors
    /// A record is not 21 bytes in Base64, or an answer has more records than the log.
    pub fn read(output: &Element) -> Result<Self, Malformed> {
        let mut records = Vec::new();
        let items = output.children.iter().filter(|child| child.name == "RecordArray");
        for (number, item) in items.enumerate() {
            let bytes = decoded(&item.text).filter(|_| number < PAGE_RECORDS);
            let bytes = bytes.ok_or_else(|| Malformed::Value {
                name: "RecordArray".to_owned(),
                expected: "at most 390 records of 21 bytes",
                found: brief(&item.text),
            })?;
            if bytes != [0; RECORD_LEN] {
                records.push(Record::parse(bytes));
            }
        }
        let is_last = output.flag("NoMoreRecords")?.unwrap_or(true);
        let next = output.text_of("IterationIdentifier").map(brief);
        Ok(Self { records, next: next.filter(|_| !is_last) })
    }
}

fn decoded(text: &str) -> Option<[u8; RECORD_LEN]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests;
