//! Commands of the system event log (IPMI 2.0 §31), and its records (§32).

mod words;

use std::fmt;

use super::{Command, Malformed, Reader, STORAGE};

/// Record ID of the first record in a request, and of no next record in a response.
const FIRST: u16 = 0x0000;
const LAST: u16 = 0xFFFF;
/// Times below are seconds since the start of the BMC, whose clock was not set (§37).
const CLOCK_SET: u32 = 0x2000_0000;
const NO_TIME: u32 = 0xFFFF_FFFF;

/// Get SEL Info (IPMI 2.0 §31.2).
#[derive(Debug, Clone, Copy)]
pub struct GetSelInfo;

/// State of the system event log (IPMI 2.0 §31.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelInfo {
    /// Number of entries in the log.
    pub entries: u16,
    /// True if the BMC supports Reserve SEL.
    pub has_reservation: bool,
    /// True if the log is full and the BMC dropped events.
    pub overflow: bool,
}

impl Command for GetSelInfo {
    const NAME: &'static str = "Get SEL Info";
    const NET_FN: u8 = STORAGE;
    const CODE: u8 = 0x40;
    type Reply = SelInfo;

    fn reply(&self, data: &[u8]) -> Result<SelInfo, Malformed> {
        let mut reader = Reader::new(data);
        reader.byte("SEL version")?;
        let entries = reader.u16("number of SEL entries")?;
        reader.take(10, "SEL timestamps")?;
        let support = reader.byte("SEL operation support")?;
        Ok(SelInfo { entries, has_reservation: support & 0x02 != 0, overflow: support & 0x80 != 0 })
    }
}

/// Reserve SEL (IPMI 2.0 §31.4): a change of record IDs then fails reads with this reservation.
#[derive(Debug, Clone, Copy)]
pub struct ReserveSel;

impl Command for ReserveSel {
    const NAME: &'static str = "Reserve SEL";
    const NET_FN: u8 = STORAGE;
    const CODE: u8 = 0x42;
    type Reply = u16;

    fn reply(&self, data: &[u8]) -> Result<u16, Malformed> {
        Reader::new(data).u16("SEL reservation")
    }
}

/// Get SEL Entry (IPMI 2.0 §31.5): one whole record.
#[derive(Debug, Clone, Copy)]
pub struct GetSelEntry {
    /// Reservation of [`ReserveSel`]; 0 without a reservation.
    pub reservation: u16,
    /// ID of the record, 0 for the first one.
    pub id: u16,
}

impl GetSelEntry {
    /// Returns the request for the first entry.
    pub fn first(reservation: u16) -> Self {
        Self { reservation, id: FIRST }
    }
}

impl Command for GetSelEntry {
    const NAME: &'static str = "Get SEL Entry";
    const NET_FN: u8 = STORAGE;
    const CODE: u8 = 0x43;
    /// ID of the next record, and the record. `None` after the last record.
    type Reply = (Option<u16>, SelRecord);

    fn data(&self) -> Vec<u8> {
        let [low, high] = self.reservation.to_le_bytes();
        let [id_low, id_high] = self.id.to_le_bytes();
        vec![low, high, id_low, id_high, 0, 0xFF]
    }

    fn reply(&self, data: &[u8]) -> Result<Self::Reply, Malformed> {
        let mut reader = Reader::new(data);
        let next = reader.u16("next SEL record ID")?;
        let record = SelRecord::parse(reader.array("SEL record")?);
        // An ID that names itself would never end.
        Ok((Some(next).filter(|next| *next != LAST && *next != record.id), record))
    }
}

/// Record of the system event log (IPMI 2.0 §32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelRecord {
    /// Record ID. IDs are unique, not necessarily ascending.
    pub id: u16,
    /// Seconds since 1970 by the BMC's clock; `None` if the clock was not set.
    pub time: Option<u32>,
    /// Content of the record.
    pub content: SelContent,
}

/// Content of a record of the system event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelContent {
    /// Event of a sensor (§32.1, record type 02h).
    Event(SensorEvent),
    /// Record of the manufacturer (§32.2 and §32.3).
    Oem {
        /// Record type, C0h to FFh, or a type that the standard reserves.
        record_type: u8,
        /// Data of the record after the time, or without a time after the type.
        data: [u8; 13],
    },
}

/// Event of a sensor (IPMI 2.0 §32.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SensorEvent {
    /// Sensor type (table 42-3).
    pub sensor_type: u8,
    /// Number of the sensor at its controller.
    pub sensor: u8,
    /// Event/reading type code (table 42-1), which gives the meaning of `offset`.
    pub event_type: u8,
    /// True if the state ended, false if it began.
    pub is_deasserted: bool,
    /// Number of the state, 0 to 15 (tables 42-2 and 42-3).
    pub offset: u8,
}

impl SelRecord {
    /// Decodes a record. Every combination of bytes is a record.
    pub fn parse(bytes: [u8; 16]) -> Self {
        let [id_low, id_high, record_type, data @ ..] = bytes;
        let time = u32::from_le_bytes([data[0], data[1], data[2], data[3]]);
        let time = (record_type < 0xE0 && time > CLOCK_SET && time != NO_TIME).then_some(time);
        let content = match record_type {
            0x02 => SelContent::Event(SensorEvent {
                sensor_type: data[7],
                sensor: data[8],
                event_type: data[9] & 0x7F,
                is_deasserted: data[9] & 0x80 != 0,
                offset: data[10] & 0x0F,
            }),
            _ => SelContent::Oem { record_type, data },
        };
        Self { id: u16::from_le_bytes([id_low, id_high]), time, content }
    }
}

impl fmt::Display for SelContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Oem { record_type, data } => {
                // Record types from E0h have no time, so their data has four bytes more.
                let data = if *record_type < 0xE0 { &data[4..] } else { &data[..] };
                let data = stdx::hex(data);
                write!(f, "manufacturer's record, type 0x{record_type:02x}: {data}")
            }
        }
    }
}

impl fmt::Display for SensorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match words::sensor_type(self.sensor_type) {
            Some(name) => write!(f, "{name} #0x{:02x}: ", self.sensor)?,
            None => write!(f, "sensor type 0x{:02x} #0x{:02x}: ", self.sensor_type, self.sensor)?,
        }
        match words::state(self.event_type, self.sensor_type, self.offset) {
            Some(state) => f.write_str(state)?,
            None => write!(f, "event type 0x{:02x}, state {}", self.event_type, self.offset)?,
        }
        f.write_str(if self.is_deasserted { " (deasserted)" } else { " (asserted)" })
    }
}

#[cfg(test)]
mod tests;
