//! Signing key of ServiceAccount tokens: `STATE/pki/serviceaccount.key`, EC P-256, created once.
//! Removal of the file invalidates all tokens at the next start.

use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use sha2::{Digest as _, Sha256};

use super::{Error, pki, private_file};

/// P-256 key that signs tokens and verifies their signatures.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
}

impl SigningKey {
    /// Reads the key in `state_dir`; creates a missing key.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written, or does not contain a P-256 key.
    pub fn ensure(state_dir: &Path) -> Result<Self, Error> {
        let folder = state_dir.join("pki");
        private_file::folder(&folder)?;
        let path = folder.join("serviceaccount.key");
        let key = pki::ensure_key(&path, "key of ServiceAccount tokens")?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der());
        let pair = pair.map_err(|_| Error::SigningKey { path })?;
        let id = stdx::hex(&Sha256::digest(pair.public_key().as_ref()));
        Ok(Self { pair, id })
    }

    /// Returns the key id (`kid`) in tokens: SHA-256 of the public key in hexadecimal.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the public key's uncompressed point, 65 bytes.
    pub fn public_point(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// Returns a signature of 64 bytes, R and S (RFC 7518 section 3.4); `None` if signing fails, as
    /// without random numbers.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.pair.sign(&SystemRandom::new(), message).ok()?;
        Some(signature.as_ref().to_vec())
    }

    /// Returns true if `signature` is a valid signature of `message` by this key.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.public_point());
        key.verify(message, signature).is_ok()
    }
}
