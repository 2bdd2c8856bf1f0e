//! Signing in the format of minisign, so that minisign and its ports can verify releases. The same
//! key signs update bundles.
//!
//! A secret key file is a comment and one line of base64. Only a key without a password (`minisign
//! -G -W`) can be used here:
//!
//! ```text
//! offset  size
//!      0     2  "Ed"
//!      2     2  key derivation of the password: zeros mean without a password
//!      4     2  "B2", the checksum algorithm
//!      6    48  parameters of the password: ignored
//!     54     8  the key number
//!     62    32  the key's seed
//!     94    32  the public key
//!    126    32  BLAKE2b-256 of "Ed", number, seed and public key; zeros are accepted too
//! ```
//!
//! A signature file has four lines:
//!
//! 1. a comment
//! 2. base64 of `ED`, the key number, and the signature of the file's BLAKE2b-512
//! 3. a trusted comment
//! 4. base64 of the signature over the first signature and the trusted comment
//!
//! The crate `minisign` 0.10 is not used: it refuses keys of `minisign -G -W`, whose checksum is
//! zeros, makes no bare signature for a bundle, and brings older versions of eleven crates.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake2::digest::consts::U32;
use blake2::{Blake2b, Blake2b512, Digest as _};

use crate::{Error, KEY_ID_BYTES, PublicKey};

const SECRET_BYTES: usize = 158;
const NUMBER: std::ops::Range<usize> = 54..62;
const SEED: std::ops::Range<usize> = 62..94;
const PUBLIC: std::ops::Range<usize> = 94..126;
const CHECKSUM: std::ops::Range<usize> = 126..158;

/// Secret Ed25519 key that signs releases.
pub struct SecretKey {
    id: [u8; KEY_ID_BYTES],
    pair: Ed25519KeyPair,
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SecretKey {
    /// Reads minisign's secret key file at `path`.
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::SecretKey`] with the reason if the file is not a usable key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|why| Error::SecretKey { path: path.to_owned(), why })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let line = text.lines().nth(1).ok_or("it has no second line")?.trim();
        let bytes = STANDARD.decode(line).map_err(|_| "its second line is not base64")?;
        if bytes.len() != SECRET_BYTES || !bytes.starts_with(b"Ed") {
            return Err("it is not a minisign secret key");
        }
        if bytes[2..4] != [0, 0] {
            return Err("it has a password; create a key without one: `minisign -G -W`");
        }
        let sum = checksum(&bytes[NUMBER], &bytes[SEED], &bytes[PUBLIC]);
        if bytes[CHECKSUM] != sum && bytes[CHECKSUM] != [0; 32] {
            return Err("its checksum is wrong");
        }
        let pair = Ed25519KeyPair::from_seed_and_public_key(&bytes[SEED], &bytes[PUBLIC])
            .map_err(|_| "its public and secret parts do not match")?;
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&bytes[NUMBER]);
        Ok(Self { id, pair })
    }

    /// Generates a key and writes it to `path`. Its public key goes to a file with the added
    /// extension `pub`.
    ///
    /// # Errors
    /// [`Error::Write`]; an existing key file is not replaced. [`Error::SecretKey`] if no key can
    /// be made.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let refuse = |why| Error::SecretKey { path: path.to_owned(), why };
        let random = SystemRandom::new();
        let mut bytes = [0u8; KEY_ID_BYTES + 32];
        let filled = aws_lc_rs::rand::SecureRandom::fill(&random, &mut bytes);
        filled.map_err(|_| refuse("the system has no random bytes"))?;
        let (id, seed) = bytes.split_at(KEY_ID_BYTES);
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| refuse("the library cannot create the key"))?;
        let public = pair.public_key().as_ref();
        let sum = checksum(id, seed, public);
        let secret = [b"Ed\0\0B2".as_slice(), &[0; 48], id, seed, public, &sum].concat();
        let text = format!("untrusted comment: minisign secret key\n{}\n", STANDARD.encode(secret));
        let write = |source| Error::Write { path: path.to_owned(), source };
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600).open(path).map_err(write)?;
        (&file).write_all(text.as_bytes()).map_err(write)?;
        let key = Self::parse(&text).map_err(refuse)?;
        let name = path.with_added_extension("pub");
        fs::write(&name, key.public().to_text())
            .map_err(|source| Error::Write { path: name.clone(), source })?;
        Ok(key)
    }

    /// Returns the public key that verifies the signatures of this key.
    pub fn public(&self) -> PublicKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey { id: self.id, key }
    }

    /// Makes an Ed25519 signature of `message` itself, without hashing `message` first.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }

    /// Makes the text of the signature file for `contents`, with the signed trusted `comment`.
    pub fn signature_file(&self, contents: &[u8], comment: &str) -> String {
        let signature = self.sign(&Blake2b512::digest(contents));
        let all = self.sign(&[&signature, comment.as_bytes()].concat());
        let first = STANDARD.encode([b"ED".as_slice(), &self.id, &signature].concat());
        let last = STANDARD.encode(all);
        format!(
            "untrusted comment: signed by Tinbox\n{first}\ntrusted comment: {comment}\n{last}\n"
        )
    }
}

fn checksum(id: &[u8], seed: &[u8], public: &[u8]) -> [u8; 32] {
    let sum = Blake2b::<U32>::new().chain_update(b"Ed").chain_update(id);
    sum.chain_update(seed).chain_update(public).finalize().into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn minisign(arguments: &[&str], at: &Path) -> bool {
        let output = Command::new("minisign").args(arguments).current_dir(at).output().unwrap();
        output.status.success()
    }

    #[test]
    fn minisign_takes_our_signatures_and_we_take_its_keys() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::write(at.join("sums"), "abc").unwrap();
        SecretKey::create(&at.join("ours")).unwrap();
        assert!(minisign(&["-G", "-W", "-s", "theirs", "-p", "theirs.pub"], at));
        for name in ["ours", "theirs"] {
            let key = SecretKey::read(&at.join(name)).unwrap();
            fs::write(at.join("sums.minisig"), key.signature_file(b"abc", "file:sums")).unwrap();
            let public = format!("{name}.pub");
            assert!(minisign(&["-V", "-H", "-p", &public, "-m", "sums"], at), "{name}");
            let text = fs::read_to_string(at.join(&public)).unwrap();
            assert_eq!(PublicKey::list(&text).unwrap(), [key.public()], "{name}");
            fs::write(at.join("sums.minisig"), key.signature_file(b"abd", "file:sums")).unwrap();
            assert!(!minisign(&["-V", "-p", &public, "-m", "sums"], at), "{name}");
        }
        let again = SecretKey::create(&at.join("ours")).unwrap_err();
        assert!(again.to_string().starts_with("cannot write "), "{again}");
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_with_the_reason() {
        let secret = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = vec![0; SECRET_BYTES];
            bytes[..6].copy_from_slice(b"Ed\0\0B2");
            change(&mut bytes);
            SecretKey::parse(&format!("comment\n{}\n", STANDARD.encode(bytes))).unwrap_err()
        };
        assert_eq!(SecretKey::parse("one line").unwrap_err(), "it has no second line");
        assert!(secret(&|bytes| bytes[2..4].copy_from_slice(b"Sc")).contains("-G -W"));
        assert!(secret(&|bytes| bytes[130] = 7).contains("checksum"));
        assert!(secret(&|bytes| bytes.truncate(150)).contains("not a minisign secret key"));
        assert!(secret(&|_| ()).contains("do not match"));
    }
}
