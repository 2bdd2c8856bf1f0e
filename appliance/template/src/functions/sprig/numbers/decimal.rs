//! Decimal arithmetic (`shopspring/decimal`), so that 0.1 + 0.2 is 0.3. A number that exceeds 128
//! bits is an error.

use std::cmp::Ordering;

/// Number of digits after the decimal point of a quotient.
const QUOTIENT_DIGITS: i32 = 16;

/// Decimal number `value` × 10^`exponent`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    value: i128,
    exponent: i32,
}

fn too_long() -> String {
    "a decimal number of more than 38 digits".to_owned()
}

fn scaled(value: i128, digits: i32) -> Result<i128, String> {
    let digits = u32::try_from(digits).map_err(|_| too_long())?;
    let power = 10i128.checked_pow(digits).ok_or_else(too_long)?;
    value.checked_mul(power).ok_or_else(too_long)
}

impl Decimal {
    /// Converts a float to the shortest decimal that parses to the same float.
    pub fn new(number: f64) -> Result<Decimal, String> {
        if !number.is_finite() {
            return Err("cannot create a Decimal from NaN or infinity".to_owned());
        }
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let part = mantissa.split_once('.').map_or(0, |(_, part)| part.len());
        let value = mantissa.replace('.', "").parse().map_err(|_| too_long())?;
        let exponent: i32 = exponent.parse().map_err(|_| too_long())?;
        Ok(Decimal { value, exponent: exponent - i32::try_from(part).unwrap_or(0) })
    }

    /// Returns both values with the smaller exponent, and that exponent.
    fn aligned(self, other: Decimal) -> Result<(i128, i128, i32), String> {
        if self.value == 0 || other.value == 0 {
            let exponent = if self.value == 0 { other.exponent } else { self.exponent };
            return Ok((self.value, other.value, exponent));
        }
        let exponent = self.exponent.min(other.exponent);
        let a = scaled(self.value, self.exponent - exponent)?;
        Ok((a, scaled(other.value, other.exponent - exponent)?, exponent))
    }

    pub fn add(self, other: Decimal) -> Result<Decimal, String> {
        let (a, b, exponent) = self.aligned(other)?;
        Ok(Decimal { value: a.checked_add(b).ok_or_else(too_long)?, exponent })
    }

    pub fn sub(self, other: Decimal) -> Result<Decimal, String> {
        self.add(Decimal { value: -other.value, ..other })
    }

    pub fn mul(self, other: Decimal) -> Result<Decimal, String> {
        let value = self.value.checked_mul(other.value).ok_or_else(too_long)?;
        Ok(Decimal { value, exponent: self.exponent + other.exponent })
    }

    /// Divides; rounds to 16 decimal places, half away from zero.
    pub fn div(self, other: Decimal) -> Result<Decimal, String> {
        if other.value == 0 {
            return Err("decimal division by 0".to_owned());
        }
        let shift = self.exponent - other.exponent + QUOTIENT_DIGITS;
        let (above, below) = match shift.cmp(&0) {
            Ordering::Less => (self.value, scaled(other.value, -shift)?),
            _ => (scaled(self.value, shift)?, other.value),
        };
        let (quotient, rest) = (above / below, above % below);
        let doubled = rest.checked_mul(2).ok_or_else(too_long)?;
        let sign = above.signum() * below.signum();
        let value = if doubled.abs() < below.abs() { quotient } else { quotient + sign };
        Ok(Decimal { value, exponent: -QUOTIENT_DIGITS })
    }

    /// Returns the nearest float of the decimal.
    pub fn float(self) -> f64 {
        format!("{}e{}", self.value, self.exponent).parse().unwrap_or(f64::NAN)
    }
}
