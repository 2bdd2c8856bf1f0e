//! Size in a storage description: a number without a unit, or with a unit such as GiB.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Size in a storage description. For a number without a unit, the field determines the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Number without a unit.
    Number(u64),
    /// Number of bytes, converted from a number with K, M, G or T (powers of 1024).
    Bytes(u64),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Amount {
    /// Returns the stored number without conversion; 0 for an omitted field.
    pub fn number(self) -> u64 {
        match self {
            Self::Number(number) | Self::Bytes(number) => number,
        }
    }

    /// Returns the size in bytes. A number without a unit counts units of `unit` bytes.
    pub fn bytes(self, unit: u64) -> u64 {
        match self {
            Self::Number(number) => number.saturating_mul(unit),
            Self::Bytes(bytes) => bytes,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let number: u64 = digits.parse().ok()?;
        let shift = match text[digits.len()..].trim() {
            "" => return Some(Self::Number(number)),
            "K" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            "T" | "TiB" => 40,
            _ => return None,
        };
        number.checked_mul(1 << shift).map(Self::Bytes)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or one with a unit such as 8GiB")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
        Ok(Amount::Number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
        u64::try_from(number).map(Amount::Number).map_err(|_| E::custom("a size below 0"))
    }

    fn visit_unit<E: Error>(self) -> Result<Amount, E> {
        Ok(Amount::default())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        let wrong = || E::custom(format!("{text:?} is not a valid size: use 8GiB or a number"));
        Amount::parse(text).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;

    #[test]
    fn amounts_have_units_or_none() {
        for (text, amount) in [
            ("7", Some(Amount::Number(7))),
            ("7 GiB", Some(Amount::Bytes(7 << 30))),
            ("512M", Some(Amount::Bytes(512 << 20))),
            ("1TiB", Some(Amount::Bytes(1 << 40))),
            ("1PB", None),
            ("99999999999TiB", None),
            ("", None),
            ("all", None),
            ("-1", None),
        ] {
            assert_eq!(Amount::parse(text), amount, "{text}");
        }
        assert_eq!(Amount::Number(8).bytes(512), 4096);
        assert_eq!(Amount::Bytes(8).bytes(512), 8);
        assert_eq!(Amount::Number(u64::MAX).bytes(512), u64::MAX);
    }
}
