//! Encoding of values on disk: plain, or encrypted so that a copied file or backup reveals no
//! secret.
//!
//! ```text
//! blob   form 0   0 · value
//!        form 1   1 · nonce (12) · AES-256-GCM ciphertext · tag (16)
//! ```
//!
//! The associated data of an encrypted value are the key and the revision of its object, so that an
//! encrypted value cannot be moved to another object or replaced by an older value. The nonce is
//! random, so one key may encrypt at most 2^32 values (NIST SP 800-38D §8.3): enough for one write
//! a second, which encrypts three values, for 45 years.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};

use crate::error::damaged;
use crate::{Error, Key};

/// Length of a sealing key in bytes (AES-256).
pub const SEALING_KEY_BYTES: usize = 32;

const PLAIN: u8 = 0;
const SEALED: u8 = 1;

/// Key that encrypts values, and a number that identifies the key without revealing it.
#[derive(Clone)]
pub struct SealingKey {
    key: Arc<RandomizedNonceKey>,
    fingerprint: u64,
}

impl SealingKey {
    /// Creates a key from its bytes.
    pub fn new(bytes: &[u8; SEALING_KEY_BYTES]) -> Self {
        let key = RandomizedNonceKey::new(&AES_256_GCM, bytes);
        let hash = digest(&SHA256, &[b"tinbox sealing key\0", bytes.as_slice()].concat());
        let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
        Self {
            key: Arc::new(key.expect("the length is that of AES-256")),
            fingerprint: u64::from_be_bytes(first),
        }
    }

    /// Reads the key from the file at `path`. If there is no file, creates a random key (mode
    /// 0600), which is on disk before its first use.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read or created, or has another length than the key.
    pub fn load_or_create(path: &Path) -> Result<Self, Error> {
        let failed = |attempt: &'static str| {
            let path = path.to_owned();
            move |source| Error::File { attempt, path, source: Arc::new(source) }
        };
        match File::open(path) {
            Ok(file) => read(file).map_err(failed("read the sealing key")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(path).map_err(failed("create the sealing key"))
            }
            Err(error) => Err(failed("open the sealing key")(error)),
        }
    }

    /// Returns a number that identifies the key; never zero.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint.max(1)
    }
}

fn read(file: File) -> io::Result<SealingKey> {
    let mut bytes = Vec::with_capacity(SEALING_KEY_BYTES + 1);
    file.take(SEALING_KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let bytes = <[u8; SEALING_KEY_BYTES]>::try_from(bytes).map_err(|bytes| {
        let what = format!("{} bytes instead of {SEALING_KEY_BYTES}", bytes.len());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })?;
    Ok(SealingKey::new(&bytes))
}

fn create(path: &Path) -> io::Result<SealingKey> {
    let mut bytes = [0; SEALING_KEY_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(io::Error::other)?;
    let fresh = PathBuf::from(format!("{}.new", path.display()));
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(SealingKey::new(&bytes))
}

/// Key, and the resources whose values are encrypted.
#[derive(Clone, Default)]
pub(crate) struct Vault {
    pub key: Option<SealingKey>,
    pub resources: Vec<String>,
}

impl Vault {
    /// Encodes a value as a blob; encrypts it if `key` is of a sealed resource.
    pub fn close(&self, key: &Key, revision: u64, value: &[u8]) -> Result<Vec<u8>, Error> {
        let sealing = self.key.as_ref().filter(|_| self.resources.contains(&key.resource));
        let Some(sealing) = sealing else {
            let mut blob = Vec::with_capacity(value.len() + 1);
            blob.push(PLAIN);
            blob.extend(value);
            return Ok(blob);
        };
        let mut cipher = value.to_vec();
        let nonce = sealing
            .key
            .seal_in_place_append_tag(Aad::from(bound(key, revision)), &mut cipher)
            .map_err(|_| Error::Unsealable { key: key.clone() })?;
        let mut blob = Vec::with_capacity(cipher.len() + NONCE_LEN + 1);
        blob.push(SEALED);
        blob.extend(nonce.as_ref());
        blob.extend(cipher);
        Ok(blob)
    }

    /// Returns the value in `blob`, decrypted if it is encrypted.
    pub fn open(&self, key: &Key, revision: u64, blob: &[u8]) -> Result<Arc<[u8]>, Error> {
        match blob.split_first() {
            Some((&PLAIN, value)) => Ok(Arc::from(value)),
            Some((&SEALED, rest)) => {
                let opened = self.key.as_ref().and_then(|sealing| {
                    let (nonce, cipher) = rest.split_first_chunk::<NONCE_LEN>()?;
                    let mut cipher = cipher.to_vec();
                    let bound = Aad::from(bound(key, revision));
                    let nonce = Nonce::assume_unique_for_key(*nonce);
                    let value = sealing.key.open_in_place(nonce, bound, &mut cipher).ok()?;
                    Some(Arc::from(&*value))
                });
                opened.ok_or_else(|| Error::Unsealable { key: key.clone() })
            }
            _ => Err(damaged(format!("{key} has a value of an unknown form"))),
        }
    }
}

fn bound(key: &Key, revision: u64) -> Vec<u8> {
    let mut bytes = revision.to_be_bytes().to_vec();
    bytes.extend(key.encode());
    bytes
}
