//! Trust in a release: public keys, lists of checksums, and signatures in the format of minisign.
//! The crate makes and verifies signatures.
//!
//! Never: decides which keys are trusted, opens a connection, prints a secret key.
//!
//! Enter at [`PublicKey::list`], [`verify`], [`sum_of`] and, to publish,
//! [`SecretKey::signature_file`].

mod error;
mod key;
mod signature;
mod signing;
mod sums;

pub use error::Error;
pub use key::{KEY_ID_BYTES, PublicKey, key_name};
pub use signature::{Unverified, verify};
pub use signing::SecretKey;
pub use sums::{SUMS, sum_of, sums_line};
