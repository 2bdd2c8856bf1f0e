//! Cryptography of cipher suites 3 and 17: HMAC, key derivation, AES-CBC-128 with IPMI's padding.
//! IPMI 1.5 has MD5 only.

use aes::Aes128;
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::CipherSuite;
use crate::Malformed;

/// Length of AES block, key and initialization vector, in bytes.
pub const BLOCK: usize = 16;

/// Length of the constants for K1 and K2 (IPMI 2.0 §13.32), in bytes. BMCs and clients use 20 for
/// every hash, whatever the block size of the hash.
const CONSTANT_LEN: usize = 20;

/// Lengths and algorithm numbers of a suite (IPMI 2.0 tables 13-17 to 13-19, 22-20).
impl CipherSuite {
    /// Returns the numbers of the authentication, integrity and confidentiality algorithm.
    pub fn algorithms(self) -> [u8; 3] {
        match self {
            Self::Three => [1, 1, 1],
            Self::Seventeen => [3, 4, 1],
        }
    }

    /// Returns the length in bytes of the key exchange code in RAKP messages 2 and 3.
    pub fn key_exchange_len(self) -> usize {
        match self {
            Self::Three => 20,
            Self::Seventeen => 32,
        }
    }

    /// Returns the length in bytes of the check value in RAKP message 4, and of AuthCodes.
    pub fn check_len(self) -> usize {
        match self {
            Self::Three => 12,
            Self::Seventeen => 16,
        }
    }
}

/// Returns the full HMAC of the concatenated `parts`: 20 bytes (suite 3) or 32 bytes (suite 17).
pub fn hmac(suite: CipherSuite, key: &[u8], parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    match suite {
        CipherSuite::Three => finish(keyed::<Hmac<Sha1>>(key), parts),
        CipherSuite::Seventeen => finish(keyed::<Hmac<Sha256>>(key), parts),
    }
}

/// Compares `code` with the beginning of the HMAC of `parts` in constant time. The caller must cut
/// `code` to the length of the suite. An empty `code` is never correct.
pub fn verify(suite: CipherSuite, key: &[u8], parts: &[&[u8]], code: &[u8]) -> bool {
    fn check<M: Mac>(mut mac: M, parts: &[&[u8]], code: &[u8]) -> bool {
        parts.iter().for_each(|part| mac.update(part));
        !code.is_empty() && mac.verify_truncated_left(code).is_ok()
    }
    match suite {
        CipherSuite::Three => check(keyed::<Hmac<Sha1>>(key), parts, code),
        CipherSuite::Seventeen => check(keyed::<Hmac<Sha256>>(key), parts, code),
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8]) -> M {
    <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length")
}

fn finish<M: Mac>(mut mac: M, parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    parts.iter().for_each(|part| mac.update(part));
    Zeroizing::new(mac.finalize().into_bytes().to_vec())
}

/// Password that authenticates the packets of an IPMI 1.5 session, filled with zeros.
#[derive(Clone)]
pub struct LegacyKey(Zeroizing<[u8; LegacyKey::LEN]>);

impl LegacyKey {
    /// Maximum length of a password, in bytes; also the length of an AuthCode.
    pub const LEN: usize = 16;

    /// Returns the key of a password; `None` if the password is longer than [`LegacyKey::LEN`].
    pub fn new(password: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; Self::LEN]);
        key.get_mut(..password.len())?.copy_from_slice(password);
        Some(Self(key))
    }

    /// Returns the AuthCode by MD5 (IPMI 2.0 §22.17.1).
    pub fn code(&self, session_id: u32, sequence: u32, message: &[u8]) -> [u8; Self::LEN] {
        let hash = Md5::new().chain_update(*self.0).chain_update(session_id.to_le_bytes());
        let hash = hash.chain_update(message).chain_update(sequence.to_le_bytes());
        hash.chain_update(*self.0).finalize().into()
    }

    /// Returns true if `code` is the AuthCode, in constant time.
    pub fn verifies(
        &self,
        session_id: u32,
        sequence: u32,
        message: &[u8],
        code: &[u8; Self::LEN],
    ) -> bool {
        let own = self.code(session_id, sequence, message);
        own.iter().zip(code).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }
}

/// Keys that sign and encrypt the packets of a session, in both directions.
pub struct SessionKeys {
    suite: CipherSuite,
    integrity: Zeroizing<Vec<u8>>,
    confidentiality: Zeroizing<[u8; BLOCK]>,
}

impl SessionKeys {
    /// Derives K1 (integrity) and K2 (encryption) from the session integrity key (IPMI 2.0 §13.32).
    pub fn derive(suite: CipherSuite, session_integrity_key: &[u8]) -> Self {
        let integrity = hmac(suite, session_integrity_key, &[&[1; CONSTANT_LEN]]);
        let second = hmac(suite, session_integrity_key, &[&[2; CONSTANT_LEN]]);
        let mut confidentiality = Zeroizing::new([0; BLOCK]);
        confidentiality.copy_from_slice(&second[..BLOCK]);
        Self { suite, integrity, confidentiality }
    }

    /// Returns the cipher suite of the keys.
    pub fn suite(&self) -> CipherSuite {
        self.suite
    }

    /// Returns the AuthCode of the signed part of a packet.
    pub fn sign(&self, signed: &[u8]) -> Vec<u8> {
        hmac(self.suite, &self.integrity, &[signed])[..self.suite.check_len()].to_vec()
    }

    /// Returns true if `code` is the complete and correct AuthCode of `signed`.
    pub fn verify(&self, signed: &[u8], code: &[u8]) -> bool {
        code.len() == self.suite.check_len() && verify(self.suite, &self.integrity, &[signed], code)
    }

    /// Encrypts a payload. Returns the initialization vector `iv` and the ciphertext, padded as in
    /// IPMI 2.0 §13.29.1 with the bytes 1, 2, 3 … and their number. `iv` must be random and never
    /// used twice.
    pub fn encrypt(&self, iv: [u8; BLOCK], payload: &[u8]) -> Vec<u8> {
        let pad = BLOCK - 1 - payload.len() % BLOCK;
        let mut block = Vec::with_capacity(payload.len() + pad + 1);
        block.extend_from_slice(payload);
        block.extend((1..=pad).map(|at| at as u8));
        block.push(pad as u8);
        let len = block.len();
        let cipher = cbc::Encryptor::<Aes128>::new(&(*self.confidentiality).into(), &iv.into());
        cipher
            .encrypt_padded::<NoPadding>(&mut block, len)
            .expect("the pad made it a multiple of the block");
        [iv.as_slice(), &block].concat()
    }

    /// Decrypts the output of [`SessionKeys::encrypt`]. The content of the pad is ignored: the
    /// packet was authenticated before.
    ///
    /// # Errors
    /// The length is not a multiple of the block size, or the pad is too long.
    pub fn decrypt(&self, payload: &[u8]) -> Result<Vec<u8>, Malformed> {
        let (iv, text) =
            payload.split_first_chunk::<BLOCK>().ok_or(Malformed::Short("encrypted payload"))?;
        let mut text = text.to_vec();
        let cipher = cbc::Decryptor::<Aes128>::new(&(*self.confidentiality).into(), &(*iv).into());
        cipher
            .decrypt_padded::<NoPadding>(&mut text)
            .map_err(|_| Malformed::Field("length of the encrypted payload"))?;
        let pad = usize::from(text.pop().ok_or(Malformed::Short("encrypted payload"))?);
        let len = text.len().checked_sub(pad).filter(|_| pad < BLOCK);
        text.truncate(len.ok_or(Malformed::Field("confidentiality pad"))?);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [CipherSuite; 2] = CipherSuite::PREFERRED;

    #[test]
    fn encryption_round_trips_at_every_length() {
        for suite in KEYS {
            let keys = SessionKeys::derive(suite, b"sik");
            for len in 0..70 {
                let payload: Vec<u8> = (0..len).collect();
                let hidden = keys.encrypt([7; BLOCK], &payload);
                assert_eq!(hidden.len() % BLOCK, 0);
                assert_eq!(keys.decrypt(&hidden).unwrap(), payload);
            }
        }
    }

    #[test]
    fn short_and_ragged_ciphertexts_are_refused() {
        let keys = SessionKeys::derive(CipherSuite::Three, b"sik");
        for len in [0, 1, 15, 16, 17, 31, 33] {
            assert!(keys.decrypt(&vec![0; len]).is_err(), "{len}");
        }
    }

    #[test]
    fn a_code_must_be_whole_and_right() {
        let keys = SessionKeys::derive(CipherSuite::Seventeen, b"sik");
        let code = keys.sign(b"packet");
        assert!(keys.verify(b"packet", &code));
        assert!(!keys.verify(b"packeT", &code));
        assert!(!keys.verify(b"packet", &code[..15]));
        assert!(!verify(CipherSuite::Three, b"k", &[b"p"], b""));
    }

    /// Test vectors: RFC 2202 case 2 and RFC 4231 case 2.
    #[test]
    fn known_answers() {
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        assert_eq!(
            stdx::hex(&hmac(CipherSuite::Three, b"Jefe", &parts)),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
        );
        assert_eq!(
            stdx::hex(&hmac(CipherSuite::Seventeen, b"Jefe", &parts)),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
