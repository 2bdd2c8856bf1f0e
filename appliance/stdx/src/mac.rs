//! Ethernet hardware addresses (MAC addresses).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 48-bit hardware address. The text form is `52:54:00:77:00:01`. Parsing accepts colons, dashes,
/// dots or no separator, in either case (the spellings that Smee accepts in URLs).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

/// Error for a text that is not six pairs of hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidMac(String);

impl fmt::Display for InvalidMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a hardware address like 52:54:00:77:00:01", self.0)
    }
}

impl std::error::Error for InvalidMac {}

impl MacAddr {
    /// Returns the form `52-54-00-77-00-01` for file names and kernel arguments.
    pub fn dashed(self) -> String {
        self.to_string().replace(':', "-")
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddr {
    type Err = InvalidMac;

    fn from_str(text: &str) -> Result<Self, InvalidMac> {
        let invalid = || InvalidMac(text.chars().take(40).collect());
        let digits: String = text.chars().filter(|c| !matches!(c, ':' | '-' | '.')).collect();
        let bytes = crate::unhex(&digits).ok_or_else(invalid)?;
        bytes.try_into().map(Self).map_err(|_| invalid())
    }
}

impl Serialize for MacAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MacAddr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::MacAddr;

    #[test]
    fn reads_every_spelling_and_prints_one() {
        for text in ["52:54:00:AB:00:01", "52-54-00-ab-00-01", "525400ab0001", "5254.00ab.0001"] {
            assert_eq!(text.parse::<MacAddr>().unwrap().to_string(), "52:54:00:ab:00:01");
        }
        for text in ["", "52:54:00:ab:00", "52:54:00:ab:00:01:02", "hello", "5254003é0001"] {
            assert!(text.parse::<MacAddr>().is_err(), "{text}");
        }
    }
}
