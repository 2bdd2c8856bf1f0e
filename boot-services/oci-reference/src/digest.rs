//! Digests of blobs and manifests.

use std::fmt;

/// SHA-256 of a blob or manifest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Computes the SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Parses `sha256:<64 hexadecimal digits>`. Returns `None` for any other text, also for a
    /// shorter digest.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = stdx::unhex(text.strip_prefix("sha256:")?)?;
        bytes.try_into().ok().map(Self)
    }

    /// Returns 64 lower-case hexadecimal digits, without `sha256:`.
    pub fn hex(&self) -> String {
        stdx::hex(&self.0)
    }
}

/// Format: `sha256:` and 64 hexadecimal digits.
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
