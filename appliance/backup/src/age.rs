//! Format of age, version 1 (https://c2sp.org/age), as far as backups use it: a passphrase, or
//! public keys of X25519.
//!
//! ```text
//! age-encryption.org/v1
//! -> scrypt SALT LOG_N              or  -> X25519 SHARE, one for each public key
//! BODY                                  the file key, encrypted
//! --- MAC
//! nonce (16) · pieces               each ChaCha20-Poly1305 of 64 KiB, the last may be shorter
//! ```
//!
//! HKDF, HMAC, ChaCha20-Poly1305 and X25519 come from the library that TLS uses; scrypt comes from
//! a crate. The pieces are in `stream`, the keys in `keys`.

mod header;
mod keys;
mod stream;

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read, Write};

use aws_lc_rs::{hkdf, rand};
use zeroize::Zeroizing;

use crate::Error;
pub use keys::{IDENTITY_PREFIX, Identity, Recipient};
use stream::{Opener, Sealer};

/// Base-2 logarithm of scrypt's N for new passphrases. Hashing takes 64 MiB of memory, which a box
/// with 512 MiB has. Each guess of an attacker takes the same memory.
pub const LOG_N: u8 = 16;
/// Maximum accepted base-2 logarithm of scrypt's N: 256 MiB of memory, as age itself writes.
pub const LOG_N_MAX: u8 = 18;

const FILE_KEY_BYTES: usize = 16;
const NONCE_BYTES: usize = 16;

type FileKey = Zeroizing<[u8; FILE_KEY_BYTES]>;

/// Secret that opens an age file.
pub enum Unlock<'a> {
    /// Passphrase, from which scrypt derives the key.
    Passphrase(&'a str),
    /// Secret key in the format of age.
    Identity(&'a Identity),
}

/// Writer that encrypts to an age file.
pub struct Encryptor<W: Write> {
    out: W,
    sealer: Sealer,
}

impl<W: Write> Encryptor<W> {
    /// Starts an age file for a passphrase. `log_n` is the base-2 logarithm of scrypt's N.
    pub fn with_passphrase(out: W, passphrase: &str, log_n: u8) -> Result<Self, Error> {
        let file_key = Zeroizing::new(random()?);
        let stanza = keys::seal_with_passphrase(&file_key, passphrase, log_n, random()?)?;
        Self::begin(out, &file_key, &[stanza])
    }

    /// Starts an age file for the owners of these public keys.
    pub fn with_recipients(out: W, recipients: &[Recipient]) -> Result<Self, Error> {
        let file_key = Zeroizing::new(random()?);
        let sealed =
            recipients.iter().map(|one| one.seal(&file_key)).collect::<Result<Vec<_>, _>>();
        let stanzas = sealed?;
        if stanzas.is_empty() {
            return Err(Error::Recipient { text: String::new() });
        }
        Self::begin(out, &file_key, &stanzas)
    }

    fn begin(mut out: W, key: &FileKey, stanzas: &[header::Stanza]) -> Result<Self, Error> {
        let nonce: [u8; NONCE_BYTES] = random()?;
        for bytes in [header::encode(stanzas, key).as_bytes(), &nonce] {
            out.write_all(bytes).map_err(Error::write)?;
        }
        Ok(Self { out, sealer: Sealer::new(&payload_key(key, &nonce)) })
    }

    /// Encrypts the last piece and returns the inner stream.
    pub fn finish(mut self) -> Result<W, Error> {
        self.out.write_all(self.sealer.last()?).map_err(Error::write)?;
        self.out.flush().map_err(Error::write)?;
        Ok(self.out)
    }
}

impl<W: Write> Write for Encryptor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(piece) = self.sealer.full()? {
            self.out.write_all(piece)?;
        }
        Ok(self.sealer.take(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reader that decrypts an age file.
pub struct Decryptor<R: BufRead> {
    input: R,
    opener: Opener,
}

impl<R: BufRead> Decryptor<R> {
    /// Reads the header of an age file and decrypts its file key.
    pub fn open(mut input: R, unlock: &Unlock<'_>) -> Result<Self, Error> {
        let found = header::decode(&mut input)?;
        let key = match unlock {
            Unlock::Passphrase(passphrase) => {
                keys::open_with_passphrase(&found.stanzas, passphrase)?
            }
            Unlock::Identity(identity) => identity.open(&found.stanzas)?,
        };
        found.check(&key)?;
        let mut nonce = [0; NONCE_BYTES];
        input.read_exact(&mut nonce).map_err(Error::read)?;
        Ok(Self { input, opener: Opener::new(&payload_key(&key, &nonce)) })
    }
}

impl<R: BufRead> Read for Decryptor<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.opener.is_empty() {
            self.opener.next(&mut self.input)?;
        }
        Ok(self.opener.give(bytes))
    }
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let none = |_| Error::Io { attempt: "encrypt", source: io::Error::other("no random bytes") };
    rand::fill(&mut bytes).map_err(none)?;
    Ok(bytes)
}

fn payload_key(key: &FileKey, nonce: &[u8]) -> Zeroizing<[u8; 32]> {
    derive(key.as_slice(), nonce, b"payload")
}

/// Derives 32 bytes with HKDF-SHA-256 (RFC 5869).
fn derive(secret: &[u8], salt: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    let info = [info];
    let expanded = extracted.expand(&info, hkdf::HKDF_SHA256);
    let filled = expanded.and_then(|made| made.fill(out.as_mut_slice()));
    filled.expect("32 bytes are what HKDF-SHA-256 gives at least");
    out
}
