//! Commands of the sensor data record (SDR) repository (IPMI 2.0 §33), and its sensor records
//! (§43.1 and §43.2).

use super::sensor::{Conversion, Factors, Format, Linearization};
use super::{Command, Malformed, Reader, STORAGE};

/// Record ID of the first record in a request, and of no next record in a response.
const FIRST: u16 = 0x0000;
const LAST: u16 = 0xFFFF;
/// Length of the header of a record, in bytes: ID, version, type, length (§43).
pub const HEADER_LEN: usize = 5;
/// Record type of a full sensor record (§43.1), then of a compact one (§43.2).
const FULL: u8 = 0x01;
const COMPACT: u8 = 0x02;
/// Owner of the sensors that the BMC itself reads: its address on its bus (§43.1, byte 6).
const BMC_OWNER: u8 = 0x20;
/// Event/reading type code of sensors with thresholds (table 42-1).
const THRESHOLD: u8 = 0x01;

/// Get SDR Repository Info (IPMI 2.0 §33.9).
#[derive(Debug, Clone, Copy)]
pub struct GetSdrInfo;

/// State of the repository. An equal value means equal records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SdrInfo {
    /// Number of records of all types.
    pub records: u16,
    /// Time of the last added record, then of the last erase, by the clock of the BMC.
    pub changed: [u32; 2],
}

impl Command for GetSdrInfo {
    const NAME: &'static str = "Get SDR Repository Info";
    const NET_FN: u8 = STORAGE;
    const CODE: u8 = 0x20;
    type Reply = SdrInfo;

    fn reply(&self, data: &[u8]) -> Result<SdrInfo, Malformed> {
        let mut reader = Reader::new(data);
        reader.byte("SDR version")?;
        let records = reader.u16("number of SDRs")?;
        reader.u16("free space of the SDR repository")?;
        let added = reader.u32("time of the last added SDR")?;
        let erased = reader.u32("time of the last erased SDR")?;
        Ok(SdrInfo { records, changed: [added, erased] })
    }
}

/// Reserve SDR Repository (IPMI 2.0 §33.11), which reads of parts of a record need.
#[derive(Debug, Clone, Copy)]
pub struct ReserveSdr;

impl Command for ReserveSdr {
    const NAME: &'static str = "Reserve SDR Repository";
    const NET_FN: u8 = STORAGE;
    const CODE: u8 = 0x22;
    type Reply = u16;

    fn reply(&self, data: &[u8]) -> Result<u16, Malformed> {
        Reader::new(data).u16("SDR reservation")
    }
}

/// Get SDR (IPMI 2.0 §33.12): a part of one record.
#[derive(Debug, Clone, Copy)]
pub struct GetSdr {
    /// Reservation that [`ReserveSdr`] returned.
    pub reservation: u16,
    /// ID of the record, 0 for the first one.
    pub id: u16,
    /// First byte of the part, from 0.
    pub offset: u8,
    /// Length of the part, in bytes.
    pub len: u8,
}

/// Part of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdrPart {
    /// ID of the next record; `None` after the last record.
    pub next: Option<u16>,
    /// Bytes of the part, at most as many as requested.
    pub bytes: Vec<u8>,
}

impl GetSdr {
    /// Returns the request for the header of a record, the first one for `None`.
    pub fn header(reservation: u16, id: Option<u16>) -> Self {
        Self { reservation, id: id.unwrap_or(FIRST), offset: 0, len: HEADER_LEN as u8 }
    }
}

impl Command for GetSdr {
    const NAME: &'static str = "Get SDR";
    const NET_FN: u8 = STORAGE;
    const CODE: u8 = 0x23;
    type Reply = SdrPart;

    fn data(&self) -> Vec<u8> {
        let [low, high] = self.reservation.to_le_bytes();
        let [id_low, id_high] = self.id.to_le_bytes();
        vec![low, high, id_low, id_high, self.offset, self.len]
    }

    fn reply(&self, data: &[u8]) -> Result<SdrPart, Malformed> {
        let mut reader = Reader::new(data);
        let next = reader.u16("next SDR ID")?;
        let bytes = reader.rest();
        if bytes.is_empty() || bytes.len() > usize::from(self.len) {
            return Err(Malformed::Field("length of the SDR part"));
        }
        let next = Some(next).filter(|next| *next != LAST && *next != self.id);
        Ok(SdrPart { next, bytes: bytes.to_vec() })
    }
}

/// Header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SdrHeader {
    /// Record ID. The first record may have another ID than the request for it.
    pub id: u16,
    /// Record type by its number in §43.
    pub record_type: u8,
    /// Length of the record after the header, in bytes.
    pub body_len: u8,
}

impl SdrHeader {
    /// Decodes a header.
    ///
    /// # Errors
    /// Fewer than [`HEADER_LEN`] bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let id = reader.u16("SDR ID")?;
        let [_, record_type, body_len] = reader.array("SDR header")?;
        Ok(Self { id, record_type, body_len })
    }

    /// Returns true for a record of a sensor that [`SensorRecord::parse`] decodes.
    pub fn is_sensor(self) -> bool {
        matches!(self.record_type, FULL | COMPACT)
    }
}

/// Sensor of a BMC, from a full or compact sensor record.
#[derive(Debug, Clone, PartialEq)]
pub struct SensorRecord {
    /// Name of the sensor.
    pub name: String,
    /// Number of the sensor.
    pub number: u8,
    /// True if the BMC itself reads the sensor. Other controllers need bridged requests.
    pub is_local: bool,
    /// True if the sensor has thresholds, false if it has discrete states.
    pub has_thresholds: bool,
    /// Unit, as in [`crate::Sensor::unit`].
    pub unit: &'static str,
    /// Conversion of a reading; `None` for a sensor without a value.
    pub conversion: Option<Conversion>,
}

impl SensorRecord {
    /// Decodes the body of a full or compact sensor record.
    ///
    /// # Errors
    /// The body is too short, or the record is of another type.
    pub fn parse(record_type: u8, body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        // Bytes are counted from 1 in the standard, and the body begins with byte 6.
        let [owner, lun, number] = reader.array("sensor key")?;
        reader.take(4, "sensor entity")?;
        let [_sensor_type, event_type] = reader.array("sensor type")?;
        reader.take(6, "sensor masks")?;
        let units: [u8; 3] = reader.array("sensor units")?;
        let conversion = match record_type {
            FULL => {
                let linearization = reader.byte("linearization")?;
                let factors = Factors::parse(reader.array("sensor factors")?);
                // Characteristics, nominal and extreme readings, thresholds, hysteresis.
                reader.take(17, "sensor limits")?;
                Format::of(units[0]).map(|format| Conversion {
                    format,
                    linearization: Linearization::of(linearization),
                    factors,
                })
            }
            COMPACT => {
                reader.take(8, "sensor sharing")?;
                None
            }
            _ => return Err(Malformed::Field("SDR type")),
        };
        Ok(Self {
            name: id_string(&mut reader)?,
            number,
            is_local: owner == BMC_OWNER && lun & 0x03 == 0,
            has_thresholds: event_type == THRESHOLD,
            unit: unit(units),
            conversion: conversion.filter(|_| event_type == THRESHOLD),
        })
    }
}

/// Returns the unit of the base unit (table 43-15), as far as people know it by a short name.
fn unit([flags, base, _]: [u8; 3]) -> &'static str {
    if flags & 0x01 != 0 {
        return "%";
    }
    match base {
        1 => "C",
        2 => "F",
        3 => "K",
        4 => "V",
        5 => "A",
        6 => "W",
        7 => "J",
        18 => "RPM",
        19 => "Hz",
        _ => "",
    }
}

/// Decodes the name of a sensor: its type and length, then its characters (§43.15).
fn id_string(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    const BCD_PLUS: &[u8; 16] = b"0123456789 -.:,_";
    let kind = reader.byte("type of the sensor name")?;
    // Some firmware gives a greater length than the record has.
    let bytes = reader.rest();
    let bytes = &bytes[..bytes.len().min(usize::from(kind & 0x1F))];
    let name: String = match kind >> 6 {
        0b01 => {
            let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0F]);
            digits.map(|digit| char::from(BCD_PLUS[usize::from(digit)])).collect()
        }
        0b10 => bytes.chunks(3).flat_map(six_bits).collect(),
        _ => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    let is_shown = |char: &char| !char.is_control();
    Ok(name.chars().filter(is_shown).collect::<String>().trim().to_owned())
}

/// Decodes up to three bytes with four characters of six bits each, low bits first.
fn six_bits(bytes: &[u8]) -> Vec<char> {
    let joined = bytes.iter().rev().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    let chars = (0..bytes.len() * 8 / 6).map(|at| joined >> (6 * at) & 0x3F);
    chars.filter_map(|six| char::from_u32(six + 0x20)).collect()
}

#[cfg(test)]
mod tests;
