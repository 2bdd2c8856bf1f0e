//! What a file must be, and what it is called here.

use std::fmt;
use std::str::FromStr;

/// A SHA-256: a file's name in the cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub(super) [u8; 32]);

/// What a file must be, where that is known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Its SHA-256.
    Sha256(Digest),
    /// Its SHA-512.
    Sha512([u8; 64]),
}

impl Digest {
    /// The digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// 64 characters.
    pub fn hex(&self) -> String {
        stdx::hex(&self.0)
    }
}

/// `sha256:<hex>`.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Neither 64 nor 128 hexadecimal digits, with or without the algorithm's name in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a checksum like sha256:<64 digits> or sha512:<128 digits>")]
pub struct InvalidChecksum;

impl FromStr for Checksum {
    type Err = InvalidChecksum;

    fn from_str(text: &str) -> Result<Self, InvalidChecksum> {
        let (name, digits) = text.trim().split_once(':').unwrap_or(("", text.trim()));
        let bytes = stdx::unhex(digits).ok_or(InvalidChecksum)?;
        match (name, bytes.len()) {
            ("" | "sha256", 32) => bytes
                .try_into()
                .map(|bytes| Self::Sha256(Digest(bytes)))
                .map_err(|_| InvalidChecksum),
            ("" | "sha512", 64) => bytes.try_into().map(Self::Sha512).map_err(|_| InvalidChecksum),
            _ => Err(InvalidChecksum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Checksum, Digest};

    #[test]
    fn checksums_are_read_as_they_are_written() {
        let digest = Digest::of(b"x");
        for text in [digest.hex(), digest.to_string(), format!(" {digest}\n")] {
            assert_eq!(text.parse(), Ok(Checksum::Sha256(digest)));
        }
        let long = "ab".repeat(64);
        assert_eq!(format!("sha512:{long}").parse(), Ok(Checksum::Sha512([0xab; 64])));
        let odd = format!("sha256:{long}");
        for text in ["", "sha256:", "sha1:aa", &long[..80], &odd, "sha512:ab"] {
            assert!(text.parse::<Checksum>().is_err(), "{text}");
        }
    }
}
