//! Payload of an age file: pieces of 64 KiB, each encrypted with its number. The last piece has a
//! mark. A moved, missing or truncated piece is therefore detected.

use std::io::{BufRead, Read as _};

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::Error;

/// Length of a piece in bytes, before encryption.
pub const PIECE: usize = 64 << 10;
const TAG: usize = 16;

struct Cipher {
    key: LessSafeKey,
    number: u64,
}

impl Cipher {
    fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key);
        let key = LessSafeKey::new(key.expect("the length is that of ChaCha20"));
        Self { key, number: 0 }
    }

    /// Returns the nonce of the next piece: eleven bytes with the piece's number, and one byte that
    /// is 1 for the last piece.
    fn nonce(&mut self, last: bool) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[3..11].copy_from_slice(&self.number.to_be_bytes());
        nonce[11] = u8::from(last);
        self.number += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Encryption of a stream in pieces.
pub struct Sealer {
    cipher: Cipher,
    plain: Zeroizing<Vec<u8>>,
    sealed: Vec<u8>,
}

impl Sealer {
    pub fn new(key: &[u8; 32]) -> Self {
        let plain = Zeroizing::new(Vec::with_capacity(PIECE));
        Self { cipher: Cipher::new(key), plain, sealed: Vec::with_capacity(PIECE + TAG) }
    }

    /// Adds as many of `bytes` to the current piece as fit, and returns their number.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(PIECE - self.plain.len());
        self.plain.extend(&bytes[..count]);
        count
    }

    /// Returns the current piece encrypted if complete. Must be called before [`Sealer::take`].
    pub fn full(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.plain.len() < PIECE {
            return Ok(None);
        }
        self.seal(false).map(Some)
    }

    /// Encrypts the last piece, which may be shorter.
    pub fn last(&mut self) -> Result<&[u8], Error> {
        self.seal(true)
    }

    fn seal(&mut self, last: bool) -> Result<&[u8], Error> {
        self.sealed.clear();
        self.sealed.extend(self.plain.iter());
        self.plain.clear();
        let nonce = self.cipher.nonce(last);
        let sealed =
            self.cipher.key.seal_in_place_append_tag(nonce, Aad::empty(), &mut self.sealed);
        let failed = |_| Error::Io {
            attempt: "encrypt",
            source: std::io::Error::other("the cipher failed"),
        };
        sealed.map_err(failed)?;
        Ok(&self.sealed)
    }
}

/// Decryption of a stream in pieces.
pub struct Opener {
    cipher: Cipher,
    piece: Zeroizing<Vec<u8>>,
    given: usize,
    over: bool,
}

impl Opener {
    pub fn new(key: &[u8; 32]) -> Self {
        let piece = Zeroizing::new(Vec::with_capacity(PIECE + TAG));
        Self { cipher: Cipher::new(key), piece, given: 0, over: false }
    }

    /// True if every decrypted byte of the piece was returned.
    pub fn is_empty(&self) -> bool {
        self.given == self.piece.len()
    }

    /// Copies decrypted bytes of the piece to `bytes`, and returns their number.
    pub fn give(&mut self, bytes: &mut [u8]) -> usize {
        let rest = &self.piece[self.given..];
        let count = bytes.len().min(rest.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        count
    }

    /// Reads and decrypts the next piece. After the last piece, the current piece is empty.
    pub fn next(&mut self, input: &mut impl BufRead) -> Result<(), Error> {
        self.piece.clear();
        self.given = 0;
        if self.over {
            return Ok(());
        }
        let whole = (PIECE + TAG) as u64;
        let mut part = input.by_ref().take(whole);
        part.read_to_end(&mut self.piece).map_err(Error::read)?;
        let last =
            self.piece.len() < PIECE + TAG || input.fill_buf().map_err(Error::read)?.is_empty();
        let first = self.cipher.number == 0;
        // Only an empty payload is a single tag without content.
        if self.piece.len() < TAG || (self.piece.len() == TAG && !first) {
            self.piece.clear();
            return Err(Error::Truncated);
        }
        let number = self.cipher.number;
        let nonce = self.cipher.nonce(last);
        let mut bytes = std::mem::take(&mut *self.piece);
        let opened = self.cipher.key.open_in_place(nonce, Aad::empty(), &mut bytes);
        let Ok(length) = opened.map(|plain| plain.len()) else {
            return Err(self.wrong(number, last));
        };
        bytes.truncate(length);
        *self.piece = bytes;
        self.over = last;
        Ok(())
    }

    /// Returns the error for a piece that fails to decrypt. A wrong last piece means truncation.
    fn wrong(&self, number: u64, last: bool) -> Error {
        match last {
            true => Error::Truncated,
            false => Error::damaged(format!("its chunk {number} was changed")),
        }
    }
}
