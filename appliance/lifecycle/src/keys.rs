//! Keys of the box: sealed to its TPM and copied; and tokens of administrators.

pub mod copies;
pub mod sealing;

/// Secret keys in the state folder, which protect other data there. The first opens the store.
pub const SECRET_KEYS: [&str; 5] =
    ["sealing.key", "boot-token.key", "pki/ca.key", "pki/server.key", "pki/serviceaccount.key"];
