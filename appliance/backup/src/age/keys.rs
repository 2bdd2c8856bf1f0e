//! Keys of an age file: a passphrase, public keys and secret keys.

use std::fmt;

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use stdx::Secret;
use zeroize::Zeroizing;

use super::header::Stanza;
use super::{FILE_KEY_BYTES, FileKey, LOG_N_MAX, derive};
use crate::Error;

/// Prefix of a secret key.
pub const IDENTITY_PREFIX: &str = "AGE-SECRET-KEY-1";

const SCRYPT: &str = "scrypt";
const SCRYPT_LABEL: &[u8] = b"age-encryption.org/v1/scrypt";
const SALT_BYTES: usize = 16;
const CURVE: &str = "X25519";
const CURVE_LABEL: &[u8] = b"age-encryption.org/v1/X25519";
const KEY_BYTES: usize = 32;
/// Length in bytes of an encrypted file key with its tag.
const BODY_BYTES: usize = FILE_KEY_BYTES + 16;

/// A public key: `age1…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient([u8; KEY_BYTES]);

/// A secret key: `AGE-SECRET-KEY-1…`.
pub struct Identity(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(…)")
    }
}

impl Recipient {
    /// Parses a public key.
    ///
    /// # Errors
    /// [`Error::Recipient`] if `text` is not a public key.
    pub fn parse(text: &str) -> Result<Self, Error> {
        // Of a slip with a secret key nothing is repeated.
        let shown = if text.starts_with(IDENTITY_PREFIX) { "a secret key" } else { text };
        let wrong = || Error::Recipient { text: shown.chars().take(100).collect() };
        let bytes = bech32::decode("age", text).ok_or_else(wrong)?;
        bytes.as_slice().try_into().map(Self).map_err(|_| wrong())
    }

    /// Returns the public key as text: `age1…`.
    pub fn text(&self) -> String {
        bech32::encode("age", &self.0)
    }

    pub(super) fn seal(&self, file_key: &FileKey) -> Result<Stanza, Error> {
        let unusable = |_| Error::Recipient { text: self.text() };
        let own = PrivateKey::generate(&X25519).map_err(unusable)?;
        let share = own.compute_public_key().map_err(unusable)?;
        let key = shared(&own, &self.0, (share.as_ref(), &self.0));
        let key = key.ok_or_else(|| Error::Recipient { text: self.text() })?;
        let arguments = vec![STANDARD_NO_PAD.encode(share.as_ref())];
        Ok(Stanza { kind: CURVE.to_owned(), arguments, body: seal(&key, file_key)? })
    }
}

impl Identity {
    /// Generates a secret key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self(Zeroizing::new(super::random()?)))
    }

    /// Returns the secret key as text: `AGE-SECRET-KEY-1…`.
    pub fn text(&self) -> Secret {
        Secret::from(bech32::encode("age-secret-key-", self.0.as_slice()).to_ascii_uppercase())
    }

    /// Parses a secret key in upper case.
    ///
    /// # Errors
    /// [`Error::KeyNeeded`] if `text` is not a secret key.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || Error::KeyNeeded { with: "a valid secret key of age" };
        let lower = Zeroizing::new(text.to_ascii_lowercase());
        let whole = text == text.to_ascii_uppercase();
        let bytes = bech32::decode("age-secret-key-", &lower).filter(|_| whole);
        let bytes = Zeroizing::new(bytes.ok_or_else(wrong)?);
        let bytes = bytes.as_slice().try_into().map_err(|_| wrong())?;
        Ok(Self(Zeroizing::new(bytes)))
    }

    /// Returns the public key of this secret key, or `None` if the library rejects the key.
    pub fn recipient(&self) -> Option<Recipient> {
        let own = PrivateKey::from_private_key(&X25519, self.0.as_slice()).ok()?;
        own.compute_public_key().ok()?.as_ref().try_into().ok().map(Recipient)
    }

    pub(super) fn open(&self, stanzas: &[Stanza]) -> Result<FileKey, Error> {
        let wrong = || Error::WrongIdentity { recipients: "others".to_owned() };
        let own = PrivateKey::from_private_key(&X25519, self.0.as_slice()).map_err(|_| wrong())?;
        let recipient = self.recipient().ok_or_else(wrong)?;
        for stanza in stanzas.iter().filter(|stanza| stanza.kind == CURVE) {
            let damaged = || Error::damaged("a key in its age header is not valid");
            let [share] = stanza.arguments.as_slice() else { return Err(damaged()) };
            let share = STANDARD_NO_PAD.decode(share).map_err(|_| damaged())?;
            if share.len() != KEY_BYTES || stanza.body.len() != BODY_BYTES {
                return Err(damaged());
            }
            let key = shared(&own, &share, (&share, &recipient.0)).ok_or_else(damaged)?;
            if let Some(file_key) = open(&key, &stanza.body) {
                return Ok(file_key);
            }
        }
        Err(wrong())
    }
}

fn shared(
    own: &PrivateKey,
    theirs: &[u8],
    (share, recipient): (&[u8], &[u8]),
) -> Option<Zeroizing<[u8; 32]>> {
    let salt = [share, recipient].concat();
    let theirs = UnparsedPublicKey::new(&X25519, theirs);
    agree(own, theirs, (), |secret| Ok(derive(secret, &salt, CURVE_LABEL))).ok()
}

pub(super) fn seal_with_passphrase(
    file_key: &FileKey,
    passphrase: &str,
    log_n: u8,
    salt: [u8; SALT_BYTES],
) -> Result<Stanza, Error> {
    let key = hash(passphrase, &salt, log_n)?;
    let arguments = vec![STANDARD_NO_PAD.encode(salt), log_n.to_string()];
    Ok(Stanza { kind: SCRYPT.to_owned(), arguments, body: seal(&key, file_key)? })
}

pub(super) fn open_with_passphrase(stanzas: &[Stanza], passphrase: &str) -> Result<FileKey, Error> {
    let damaged = || Error::damaged("it is not encrypted with a passphrase");
    let [stanza] = stanzas else { return Err(damaged()) };
    let [salt, log_n] = stanza.arguments.as_slice() else { return Err(damaged()) };
    if stanza.kind != SCRYPT || stanza.body.len() != BODY_BYTES {
        return Err(damaged());
    }
    let salt = STANDARD_NO_PAD.decode(salt).map_err(|_| damaged())?;
    let digits = !log_n.starts_with('0') && log_n.bytes().all(|byte| byte.is_ascii_digit());
    let found = log_n.parse::<u8>().ok().filter(|_| digits && salt.len() == SALT_BYTES);
    let found = found.ok_or_else(damaged)?;
    if found > LOG_N_MAX {
        return Err(Error::TooCostly { found, known: LOG_N_MAX });
    }
    let key = hash(passphrase, &salt, found)?;
    open(&key, &stanza.body).ok_or(Error::WrongPassphrase)
}

fn hash(passphrase: &str, salt: &[u8], log_n: u8) -> Result<Zeroizing<[u8; 32]>, Error> {
    let salt = [SCRYPT_LABEL, salt].concat();
    let mut out = Zeroizing::new([0; 32]);
    let params = scrypt::Params::new(log_n, 8, 1);
    let params = params.map_err(|_| Error::damaged("its work factor is not valid"))?;
    let hashed = scrypt::scrypt(passphrase.as_bytes(), &salt, &params, out.as_mut_slice());
    hashed.map_err(|_| Error::damaged("its work factor is not valid"))?;
    Ok(out)
}

fn cipher(key: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key);
    LessSafeKey::new(key.expect("the length is that of ChaCha20"))
}

/// Returns the zero nonce. Each key encrypts one message only, so the nonce does not repeat.
fn once() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn seal(key: &[u8; 32], file_key: &FileKey) -> Result<Vec<u8>, Error> {
    let mut body = file_key.to_vec();
    let sealed = cipher(key).seal_in_place_append_tag(once(), Aad::empty(), &mut body);
    let failed =
        |_| Error::Io { attempt: "encrypt", source: std::io::Error::other("the cipher failed") };
    sealed.map(|()| body).map_err(failed)
}

fn open(key: &[u8; 32], body: &[u8]) -> Option<FileKey> {
    let mut body = Zeroizing::new(body.to_vec());
    let opened = cipher(key).open_in_place(once(), Aad::empty(), &mut body).ok()?;
    <[u8; FILE_KEY_BYTES]>::try_from(&*opened).ok().map(Zeroizing::new)
}

/// !Bech32, the text form of keys with a checksum (BIP 173).
mod bech32 {
    const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const SUM: usize = 6;
    /// Maximum length of an accepted text in characters. Keys have at most 74.
    const TEXT_MAX: usize = 128;

    fn checksum(prefix: &str, values: impl Iterator<Item = u8>) -> u32 {
        let high = prefix.bytes().map(|byte| byte >> 5);
        let low = prefix.bytes().map(|byte| byte & 31);
        high.chain([0]).chain(low).chain(values).fold(1, |sum: u32, value| {
            let top = sum >> 25;
            let next = (sum & 0x01ff_ffff) << 5 ^ u32::from(value);
            let terms = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
            terms.iter().enumerate().fold(next, |next, (bit, term)| {
                if top >> bit & 1 == 1 { next ^ term } else { next }
            })
        })
    }

    /// Converts `from`-bit groups to `to`-bit groups. `fills` pads the last group with zero bits.
    fn regrouped(values: &[u8], from: u32, to: u32, fills: bool) -> Option<Vec<u8>> {
        let (mut held, mut bits, mut out) = (0_u32, 0, Vec::new());
        let group = |held: u32| u8::try_from(held & ((1 << to) - 1)).unwrap_or(0);
        for value in values {
            held = (held << from | u32::from(*value)) & 0xffff;
            bits += from;
            while bits >= to {
                bits -= to;
                out.push(group(held >> bits));
            }
        }
        let rest = group(held << (to - bits));
        match fills {
            true if bits > 0 => out.push(rest),
            false if bits >= from || rest != 0 => return None,
            _ => {}
        }
        Some(out)
    }

    pub fn encode(prefix: &str, bytes: &[u8]) -> String {
        let mut values = regrouped(bytes, 8, 5, true).unwrap_or_default();
        let sum = checksum(prefix, values.iter().copied().chain([0; SUM])) ^ 1;
        values.extend((0..SUM).rev().map(|at| u8::try_from(sum >> (5 * at) & 31).unwrap_or(0)));
        let letters = values.iter().map(|value| char::from(ALPHABET[usize::from(*value)]));
        format!("{prefix}1{}", letters.collect::<String>())
    }

    pub fn decode(prefix: &str, text: &str) -> Option<Vec<u8>> {
        let data = text.strip_prefix(prefix)?.strip_prefix('1')?;
        if text.len() > TEXT_MAX {
            return None;
        }
        let value = |byte: u8| ALPHABET.iter().position(|letter| *letter == byte);
        let values = data.bytes().map(|byte| value(byte).and_then(|at| u8::try_from(at).ok()));
        let values = values.collect::<Option<Vec<u8>>>()?;
        let end = values.len().checked_sub(SUM)?;
        let good = checksum(prefix, values.iter().copied()) == 1;
        good.then(|| regrouped(&values[..end], 5, 8, false)).flatten()
    }
}
