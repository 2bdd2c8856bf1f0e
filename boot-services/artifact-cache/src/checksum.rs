//! Expected checksum of a downloaded file, and the digest under which the cache stores the file.

use std::str::FromStr;

use oci_reference::Digest;

/// Expected checksum of a file, if it is known before the download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// SHA-256 of the file.
    Sha256(Digest),
    /// SHA-512 of the file.
    Sha512([u8; 64]),
}

/// Error: the text is neither 64 nor 128 hexadecimal digits, with or without the algorithm's name
/// in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a checksum such as sha256:<64 digits> or sha512:<128 digits>")]
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
