//! Public keys in the format of minisign. A key file has two lines: a comment, and base64 of `Ed`,
//! the key number and the key.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Error;

/// Length of a key number, in bytes.
pub const KEY_ID_BYTES: usize = 8;
const KEY_BYTES: usize = 32;

/// Public key of minisign. The caller decides which keys are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// Key number, which a signature contains.
    pub id: [u8; KEY_ID_BYTES],
    /// Ed25519 public key (RFC 8032).
    pub key: [u8; KEY_BYTES],
}

impl PublicKey {
    /// Parses all public keys in `text`, which may contain several minisign key files.
    ///
    /// # Errors
    /// [`Error::PublicKey`] with the number of the first invalid line.
    pub fn list(text: &str) -> Result<Vec<Self>, Error> {
        let lines = text.lines().map(str::trim).enumerate();
        let keys = lines.filter(|(_, line)| !line.is_empty() && !line.contains("comment:"));
        keys.map(|(at, line)| {
            Self::parse(line).map_err(|why| Error::PublicKey { line: at + 1, why })
        })
        .collect()
    }

    fn parse(line: &str) -> Result<Self, &'static str> {
        let bytes = STANDARD.decode(line).map_err(|_| "it is not base64")?;
        let rest = bytes.strip_prefix(b"Ed").ok_or("it is for another algorithm")?;
        let (id, key) = rest.split_at_checked(KEY_ID_BYTES).ok_or("it is too short")?;
        let wrong = |_| "it has the wrong length";
        Ok(Self { id: id.try_into().map_err(wrong)?, key: key.try_into().map_err(wrong)? })
    }

    /// Formats the key as a key file of minisign.
    pub fn to_text(&self) -> String {
        let (name, line) = (key_name(&self.id), self.line());
        format!("untrusted comment: minisign public key {name}\n{line}\n")
    }

    /// Returns the second line of the key file: base64 of `Ed`, the key number and the key.
    pub(crate) fn line(&self) -> String {
        STANDARD.encode([b"Ed".as_slice(), &self.id, &self.key].concat())
    }

    /// True if `signature` is an Ed25519 signature of `message` by this key.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.key).verify(message, signature).is_ok()
    }
}

/// Formats a key number as minisign prints it.
pub fn key_name(id: &[u8; KEY_ID_BYTES]) -> String {
    format!("{:016X}", u64::from_le_bytes(*id))
}

#[cfg(test)]
mod tests {
    use super::PublicKey;

    #[test]
    fn keys_are_read_from_minisigns_lines() {
        let key = PublicKey { id: *b"12345678", key: [7; 32] };
        let other = PublicKey { id: *b"abcdefgh", key: [8; 32] };
        let text = key.to_text() + "\r\n" + &other.to_text();
        assert_eq!(PublicKey::list(&text).unwrap(), [key.clone(), other]);
        assert!(
            key.to_text().starts_with("untrusted comment: minisign public key 3837363534333231\n")
        );
        assert_eq!(PublicKey::list("").unwrap(), []);
        let wrong = |text: &str| PublicKey::list(text).unwrap_err().to_string();
        assert_eq!(
            wrong("untrusted comment: x\n!"),
            "line 2 is not a valid minisign public key: it is not base64"
        );
        assert!(wrong("RWQ=").ends_with("it is too short"));
        assert!(wrong("QUJD").ends_with("it is for another algorithm"));
    }
}
