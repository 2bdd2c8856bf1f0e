//! Reading of a sensor (IPMI 2.0 §35.14) and its conversion to a value (§36.3).

use super::{Command, Malformed, Reader, SENSOR};

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

/// Get Sensor Reading (IPMI 2.0 §35.14).
#[derive(Debug, Clone, Copy)]
pub struct GetSensorReading {
    /// Number of the sensor.
    pub number: u8,
}

/// Reading of a sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Value before its conversion; `None` if the sensor has no value now.
    pub raw: Option<u8>,
    /// Comparison with the thresholds: bits 0 to 2 lower, bits 3 to 5 upper.
    comparison: u8,
}

impl Reading {
    /// Returns the state of a sensor with thresholds.
    pub fn threshold_state(self) -> SensorState {
        const NON_CRITICAL: u8 = 0b00_1001;
        match self.comparison & 0x3F {
            _ if self.raw.is_none() => SensorState::Unknown,
            0 => SensorState::Ok,
            bits if bits & !NON_CRITICAL == 0 => SensorState::Warning,
            _ => SensorState::Critical,
        }
    }
}

impl Command for GetSensorReading {
    const NAME: &'static str = "Get Sensor Reading";
    const NET_FN: u8 = SENSOR;
    const CODE: u8 = 0x2D;
    type Reply = Reading;

    fn data(&self) -> Vec<u8> {
        vec![self.number]
    }

    fn reply(&self, data: &[u8]) -> Result<Reading, Malformed> {
        let mut reader = Reader::new(data);
        let [raw, flags] = reader.array("sensor reading")?;
        let is_scanned = flags & 0x40 != 0 && flags & 0x20 == 0;
        // Some firmware leaves the comparison out.
        let comparison = reader.byte("threshold comparison").unwrap_or(0);
        Ok(Reading { raw: is_scanned.then_some(raw), comparison })
    }
}

/// Get Sensor Reading Factors (IPMI 2.0 §35.5), for a sensor that is not linear.
#[derive(Debug, Clone, Copy)]
pub struct GetReadingFactors {
    /// Number of the sensor.
    pub number: u8,
    /// Reading that the factors convert.
    pub raw: u8,
}

impl Command for GetReadingFactors {
    const NAME: &'static str = "Get Sensor Reading Factors";
    const NET_FN: u8 = SENSOR;
    const CODE: u8 = 0x23;
    type Reply = Factors;

    fn data(&self) -> Vec<u8> {
        vec![self.number, self.raw]
    }

    fn reply(&self, data: &[u8]) -> Result<Factors, Malformed> {
        let mut reader = Reader::new(data);
        reader.byte("next reading")?;
        Ok(Factors::parse(reader.array("sensor factors")?))
    }
}

/// Analog data format of a reading (§43.1, byte 21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Number from 0 to 255.
    Unsigned,
    /// Negative numbers are the complement of all bits.
    OnesComplement,
    /// Signed number of eight bits.
    TwosComplement,
}

impl Format {
    /// Returns the format of a record's units byte 1; `None` if the sensor has no analog value.
    pub fn of(units: u8) -> Option<Self> {
        match units >> 6 {
            0b00 => Some(Self::Unsigned),
            0b01 => Some(Self::OnesComplement),
            0b10 => Some(Self::TwosComplement),
            _ => None,
        }
    }

    fn number(self, raw: u8) -> i16 {
        match self {
            Self::Unsigned => i16::from(raw),
            Self::OnesComplement if raw & 0x80 != 0 => -i16::from(!raw),
            Self::OnesComplement => i16::from(raw),
            Self::TwosComplement => i16::from(raw as i8),
        }
    }
}

/// Function that follows the linear conversion (§43.1, byte 24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linearization {
    /// Function number 0 to 11, from linear to cube root.
    Function(u8),
    /// The factors depend on the reading: see [`GetReadingFactors`].
    PerReading,
}

impl Linearization {
    /// Returns the linearization of byte 24 of a full sensor record.
    pub fn of(byte: u8) -> Self {
        match byte & 0x7F {
            function @ 0..=11 => Self::Function(function),
            _ => Self::PerReading,
        }
    }

    fn apply(self, x: f64) -> f64 {
        match self {
            Self::Function(1) => x.ln(),
            Self::Function(2) => x.log10(),
            Self::Function(3) => x.log2(),
            Self::Function(4) => x.exp(),
            Self::Function(5) => 10_f64.powf(x),
            Self::Function(6) => x.exp2(),
            Self::Function(7) => x.recip(),
            Self::Function(8) => x.powi(2),
            Self::Function(9) => x.powi(3),
            Self::Function(10) => x.sqrt(),
            Self::Function(11) => x.cbrt(),
            Self::Function(_) | Self::PerReading => x,
        }
    }
}

/// Factors M, B and the exponents of the linear conversion (§36.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factors {
    /// Factor M, ten bits signed.
    pub m: i16,
    /// Offset B, ten bits signed.
    pub b: i16,
    /// Exponent K1 of the offset, four bits signed.
    pub b_exponent: i8,
    /// Exponent K2 of the result, four bits signed.
    pub result_exponent: i8,
}

impl Factors {
    /// Decodes bytes 25 to 30 of a full sensor record, which are also a reply of
    /// [`GetReadingFactors`].
    pub fn parse(bytes: [u8; 6]) -> Self {
        let ten_bits = |low: u8, high: u8| {
            let joined = u16::from(high >> 6) << 8 | u16::from(low);
            // The sign is bit 9.
            (joined << 6) as i16 >> 6
        };
        let exponents = bytes[5] as i8;
        Self {
            m: ten_bits(bytes[0], bytes[1]),
            b: ten_bits(bytes[2], bytes[3]),
            b_exponent: exponents << 4 >> 4,
            result_exponent: exponents >> 4,
        }
    }
}

/// Conversion of a reading to a value (§36.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conversion {
    /// Format of the reading.
    pub format: Format,
    /// Function after the linear conversion.
    pub linearization: Linearization,
    /// Factors of the linear conversion.
    pub factors: Factors,
}

impl Conversion {
    /// Returns the value of a reading; `None` if the function has no value there, such as the
    /// logarithm of zero.
    pub fn value(&self, raw: u8) -> Option<f64> {
        let Factors { m, b, b_exponent, result_exponent } = self.factors;
        let x = f64::from(m) * f64::from(self.format.number(raw));
        let sum = x + f64::from(b) * 10_f64.powi(b_exponent.into());
        let value = self.linearization.apply(sum * 10_f64.powi(result_exponent.into()));
        Some(value).filter(|value| value.is_finite())
    }
}

#[cfg(test)]
mod tests;
