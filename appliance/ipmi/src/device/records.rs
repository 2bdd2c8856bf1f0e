//! Sensors and event log of a BMC, read record by record.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Ipmi;
use crate::command::sdr::{GetSdr, GetSdrInfo, HEADER_LEN, ReserveSdr, SdrHeader, SensorRecord};
use crate::command::sel::{GetSelEntry, GetSelInfo, ReserveSel, SelRecord};
use crate::command::sensor::{
    Conversion, GetReadingFactors, GetSensorReading, Linearization, Reading,
};
use crate::line::{Sensors, Turn};
use crate::{CompletionCode, Error, SensorState};

/// Maximum number of records that are read of the SDR repository.
const SDRS_LIMIT: usize = 512;
/// Length of a part of an SDR, in bytes. Small BMCs refuse more than about 25.
const PART_LEN: u8 = 16;
/// Entries of the event log that are read in one turn, so that a power action waits less than a
/// second for a long log.
const ENTRIES_PER_TURN: usize = 32;
/// Maximum number of entries that are read of the event log.
const ENTRIES_LIMIT: usize = 16_384;
/// Number of reservations that other clients of the BMC may cancel during one reading.
const RESERVATIONS: usize = 8;

/// Value of one sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensor {
    /// Name that the BMC gives to the sensor.
    pub name: String,
    /// Value in `unit`; `None` for a sensor without a value at this time.
    pub value: Option<f64>,
    /// Unit: `C`, `V`, `W`, `RPM`, `A`; empty for a discrete sensor.
    pub unit: &'static str,
    /// State by the thresholds of the BMC.
    pub state: SensorState,
}

impl Ipmi {
    /// Reads the values and states of all sensors.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or a command, or sends invalid data.
    pub async fn sensors(&self) -> Result<Vec<Sensor>, Error> {
        let records = self.line.turn(&self.endpoint, async |turn| sensor_records(turn).await);
        let mut sensors = Vec::new();
        for record in records.await?.iter() {
            // One turn a sensor: a power action does not wait for all of them.
            let read = async |turn: &mut Turn<'_>| read_sensor(turn, record).await;
            sensors.push(self.line.turn(&self.endpoint, read).await?);
        }
        Ok(sensors)
    }

    /// Reads the newest entries of the event log, at most `limit`, oldest first.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login or a command, or sends invalid data.
    pub async fn events(&self, limit: usize) -> Result<Vec<SelRecord>, Error> {
        let info = self.line.turn(&self.endpoint, async |turn| turn.call(&GetSelInfo).await);
        let info = info.await?;
        let mut log = LogReader {
            has_reservation: info.has_reservation,
            reservations: 0,
            request: GetSelEntry::first(0),
            limit,
            entries: VecDeque::new(),
        };
        let mut is_more = info.entries > 0;
        let mut read = 0;
        while is_more && read < ENTRIES_LIMIT {
            let turn = async |turn: &mut Turn<'_>| log.read_some(turn).await;
            is_more = self.line.turn(&self.endpoint, turn).await?;
            read += ENTRIES_PER_TURN;
        }
        Ok(log.entries.into())
    }
}

/// Progress of a reading of the event log.
struct LogReader {
    has_reservation: bool,
    reservations: usize,
    request: GetSelEntry,
    limit: usize,
    /// Newest entries, at most `limit`.
    entries: VecDeque<SelRecord>,
}

impl LogReader {
    /// Reads up to [`ENTRIES_PER_TURN`] entries. Returns true if the log has more.
    async fn read_some(&mut self, turn: &mut Turn<'_>) -> Result<bool, Error> {
        for _ in 0..ENTRIES_PER_TURN {
            if self.has_reservation && self.request.reservation == 0 {
                self.reserve(turn).await?;
            }
            let (next, record) = match turn.call(&self.request).await {
                Ok(answer) => answer,
                Err(Error::CommandRefused { refusal, .. })
                    if refusal.code == CompletionCode::RESERVATION_CANCELED
                        && self.reservations < RESERVATIONS =>
                {
                    self.request.reservation = 0;
                    continue;
                }
                // The log was cleared while it was read.
                Err(Error::CommandRefused { refusal, .. })
                    if refusal.code == CompletionCode::NOT_PRESENT =>
                {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            self.entries.push_back(record);
            if self.entries.len() > self.limit {
                self.entries.pop_front();
            }
            let Some(next) = next else { return Ok(false) };
            self.request.id = next;
        }
        Ok(true)
    }

    async fn reserve(&mut self, turn: &mut Turn<'_>) -> Result<(), Error> {
        self.reservations += 1;
        match turn.call(&ReserveSel).await {
            Ok(reservation) => self.request.reservation = reservation,
            // Whole records can be read without a reservation (IPMI 2.0 §31.4).
            Err(Error::CommandRefused { .. }) => self.has_reservation = false,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Returns the sensors of the repository, from the line if the repository has not changed.
async fn sensor_records(turn: &mut Turn<'_>) -> Result<Arc<[SensorRecord]>, Error> {
    let info = turn.call(&GetSdrInfo).await?;
    if let Some(known) = turn.sensors().filter(|known| known.info == info) {
        return Ok(Arc::clone(&known.records));
    }
    let mut reservation = turn.call(&ReserveSdr).await?;
    let mut records = Vec::new();
    let (mut id, mut canceled) = (None, 0);
    for _ in 0..SDRS_LIMIT {
        let next = match read_record(turn, reservation, id).await {
            Ok((next, record)) => {
                records.extend(record);
                next
            }
            Err(Error::CommandRefused { refusal, .. })
                if refusal.code == CompletionCode::RESERVATION_CANCELED
                    && canceled < RESERVATIONS =>
            {
                canceled += 1;
                reservation = turn.call(&ReserveSdr).await?;
                continue;
            }
            // The repository has no record.
            Err(Error::CommandRefused { refusal, .. })
                if refusal.code == CompletionCode::NOT_PRESENT =>
            {
                break;
            }
            Err(error) => return Err(error),
        };
        let Some(next) = next else { break };
        id = Some(next);
    }
    let records: Arc<[SensorRecord]> = records.into();
    turn.keep_sensors(Sensors { info, records: Arc::clone(&records) });
    Ok(records)
}

/// Reads one record. Returns the ID of the next one, and the sensor if the record has one.
async fn read_record(
    turn: &mut Turn<'_>,
    reservation: u16,
    id: Option<u16>,
) -> Result<(Option<u16>, Option<SensorRecord>), Error> {
    let request = GetSdr::header(reservation, id);
    let part = turn.call(&request).await?;
    let header = SdrHeader::parse(&part.bytes).map_err(|source| turn.hostile("Get SDR", source))?;
    let next = part.next.filter(|next| *next != header.id);
    if !header.is_sensor() {
        return Ok((next, None));
    }
    let mut body = Vec::with_capacity(header.body_len.into());
    while body.len() < usize::from(header.body_len) {
        // The offset has one byte, so the end of a longest record cannot be requested.
        let Ok(offset) = u8::try_from(HEADER_LEN + body.len()) else { break };
        let len = PART_LEN.min(header.body_len - body.len() as u8);
        let part = turn.call(&GetSdr { offset, len, ..request }).await?;
        body.extend_from_slice(&part.bytes);
    }
    match SensorRecord::parse(header.record_type, &body) {
        Ok(record) => Ok((next, Some(record))),
        Err(malformed) => {
            tracing::debug!(record = header.id, %malformed, "sensor data record not valid");
            Ok((next, None))
        }
    }
}

async fn read_sensor(turn: &mut Turn<'_>, record: &SensorRecord) -> Result<Sensor, Error> {
    let (name, unit) = (record.name.clone(), record.unit);
    let silent = |state| Sensor { name: name.clone(), value: None, unit, state };
    if !record.is_local {
        return Ok(silent(SensorState::Unknown));
    }
    let reading = match turn.call(&GetSensorReading { number: record.number }).await {
        Ok(reading) => reading,
        // The sensor's part of the machine is off or absent.
        Err(Error::CommandRefused { .. }) => return Ok(silent(SensorState::Unknown)),
        Err(error) => return Err(error),
    };
    let value = match (record.conversion, reading.raw) {
        (Some(conversion), Some(raw)) => {
            let conversion = factored(turn, record.number, conversion, raw).await?;
            conversion.and_then(|conversion| conversion.value(raw))
        }
        _ => None,
    };
    Ok(Sensor { value, ..silent(state(record, reading)) })
}

fn state(record: &SensorRecord, reading: Reading) -> SensorState {
    match record.has_thresholds {
        true => reading.threshold_state(),
        // The states of a discrete sensor have no common order.
        false => SensorState::Unknown,
    }
}

/// Returns the conversion of a reading; `None` if the BMC does not give the factors.
async fn factored(
    turn: &mut Turn<'_>,
    number: u8,
    conversion: Conversion,
    raw: u8,
) -> Result<Option<Conversion>, Error> {
    if conversion.linearization != Linearization::PerReading {
        return Ok(Some(conversion));
    }
    match turn.call(&GetReadingFactors { number, raw }).await {
        Ok(factors) => Ok(Some(Conversion { factors, ..conversion })),
        Err(Error::CommandRefused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
