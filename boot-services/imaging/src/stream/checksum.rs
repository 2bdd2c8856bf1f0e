//! Checksums of images: MD5, SHA-256 and SHA-512.

pub(super) mod summing;
pub(super) mod sums;

use std::fmt;
use std::str::FromStr;

use md5::Md5;
use sha2::{Digest, Sha256, Sha512};

use super::Url;
use crate::Error;

/// Supported checksum algorithm. The order is by strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// MD5 (RFC 1321). Detects accidental damage, not a forged image.
    Md5,
    /// SHA-256, by FIPS 180-4.
    Sha256,
    /// SHA-512, by FIPS 180-4.
    Sha512,
}

impl Algorithm {
    /// All algorithms, weakest first.
    const ALL: [Self; 3] = [Self::Md5, Self::Sha256, Self::Sha512];

    /// Returns the name, as in `algorithm:hex`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Returns the number of hexadecimal digits of a checksum.
    pub fn digits(self) -> usize {
        self.digest_bytes() * 2
    }

    fn digest_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Returns the algorithm with this digest length; the lengths are unique. `None` for others.
    fn of_length(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.digest_bytes() == bytes)
    }
}

/// Expected or computed checksum, with its algorithm.
#[derive(Clone, PartialEq, Eq)]
pub struct Checksum {
    algorithm: Algorithm,
    digest: Vec<u8>,
}

impl Checksum {
    /// Returns [`Error::Digest`] for the wrong checksum `actual` of `url`.
    pub(super) fn missed(&self, url: &Url, actual: &Self) -> Error {
        Error::Digest {
            algorithm: self.algorithm.name(),
            actual: actual.to_string(),
            expected: self.to_string(),
            url: url.to_string(),
        }
    }

    /// Parses `hex` or `algorithm:hex` for the given algorithm. Returns `None` for other text.
    pub fn parse(algorithm: Algorithm, text: &str) -> Option<Self> {
        let text = text.trim();
        let hex = match text.split_once(':') {
            Some((name, hex)) if name.eq_ignore_ascii_case(algorithm.name()) => hex,
            Some(_) => return None,
            None => text,
        };
        let digest = stdx::unhex(hex)?;
        (digest.len() == algorithm.digest_bytes()).then_some(Self { algorithm, digest })
    }

    /// Parses hexadecimal digits. Their number determines the algorithm; `None` for other text.
    pub(super) fn of_hex(hex: &str) -> Option<Self> {
        let digest = stdx::unhex(hex)?;
        Some(Self { algorithm: Algorithm::of_length(digest.len())?, digest })
    }

    /// Returns the algorithm of this checksum.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Parses `algorithm:hex`, as in OCI digests and in upstream's TARFILE_CHECKSUM.
impl FromStr for Checksum {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (name, _) = text.trim().split_once(':').ok_or(())?;
        let mut all = Algorithm::ALL.into_iter();
        let algorithm = all.find(|known| known.name().eq_ignore_ascii_case(name)).ok_or(())?;
        Self::parse(algorithm, text).ok_or(())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&stdx::hex(&self.digest))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", self.algorithm.name())
    }
}

/// Hash state of any supported algorithm.
#[derive(Clone)]
pub(super) enum Hasher {
    Md5(Md5),
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub(super) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Md5 => Self::Md5(Md5::new()),
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(hash) => hash.update(bytes),
            Self::Sha256(hash) => hash.update(bytes),
            Self::Sha512(hash) => hash.update(bytes),
        }
    }

    pub(super) fn finish(self) -> Checksum {
        let (algorithm, digest) = match self {
            Self::Md5(hash) => (Algorithm::Md5, hash.finalize().to_vec()),
            Self::Sha256(hash) => (Algorithm::Sha256, hash.finalize().to_vec()),
            Self::Sha512(hash) => (Algorithm::Sha512, hash.finalize().to_vec()),
        };
        Checksum { algorithm, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, Checksum, Hasher};

    /// Checksums of the three bytes `abc`: the examples of FIPS 180-4 and RFC 1321.
    const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";
    const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const SHA512: &str = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                          2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";

    #[test]
    fn sums_are_computed_and_read() {
        for (algorithm, hex) in
            [(Algorithm::Md5, MD5), (Algorithm::Sha256, SHA256), (Algorithm::Sha512, SHA512)]
        {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(b"a");
            hasher.update(b"bc");
            let made = hasher.finish();
            let spelled = format!("{}:{hex}", algorithm.name());
            assert_eq!(made.to_string(), hex);
            assert_eq!(Some(&made), Checksum::parse(algorithm, hex).as_ref());
            assert_eq!(Some(&made), Checksum::parse(algorithm, &spelled).as_ref());
            assert_eq!(Ok(made), spelled.to_uppercase().parse());
        }
        assert!("sha1:00".parse::<Checksum>().is_err() && SHA256.parse::<Checksum>().is_err());
        assert_eq!(Checksum::parse(Algorithm::Sha256, &format!("sha512:{SHA256}")), None);
        assert_eq!(Checksum::parse(Algorithm::Sha512, SHA256), None);
    }
}
