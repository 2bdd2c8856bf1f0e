//! Hash of a passphrase: in the files `STATE/owner.json` and `STATE/users.json`.

use argon2::{Algorithm, Argon2, MIN_SALT_LEN, Params, Version};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

/// Minimum length of a passphrase, in characters.
pub const CHARS_MIN: usize = 8;
/// Maximum length of a passphrase, in bytes.
pub const BYTES_MAX: usize = 1024;
/// Memory of one hash in KiB, as OWASP recommends for argon2id. A box with 1 GB has enough memory,
/// because it computes one hash at a time.
const MEMORY_KIB: u32 = 19 * 1024;
/// Number of argon2id passes over the memory.
const PASSES: u32 = 2;
/// Maximum memory in KiB that a stored hash may request.
const MEMORY_KIB_MAX: u32 = 64 * 1024;

/// Hash of a passphrase with its parameters, so that later versions can check old hashes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hash {
    memory_kib: u32,
    passes: u32,
    salt: String,
    hash: String,
}

/// Checks that a passphrase is allowed.
///
/// # Errors
/// The passphrase is too short or too long. The error is a sentence for the owner.
pub fn check(text: &str) -> Result<(), &'static str> {
    match text {
        _ if text.chars().count() < CHARS_MIN => {
            Err("The passphrase is too short: at least 8 characters.")
        }
        _ if text.len() > BYTES_MAX => Err("The passphrase is too long: at most 1024 bytes."),
        _ => Ok(()),
    }
}

impl Hash {
    /// Hashes a passphrase. Takes about 50 ms of processor time and 19 MiB. Returns `None` if
    /// memory is short.
    pub fn of(text: &str, salt: [u8; 16]) -> Option<Self> {
        let hash = compute(text, &salt, MEMORY_KIB, PASSES)?;
        let (salt, hash) = (stdx::hex(&salt), stdx::hex(&hash));
        Some(Self { memory_kib: MEMORY_KIB, passes: PASSES, salt, hash })
    }

    /// Returns a hash that no passphrase matches, for a file that cannot be read.
    pub fn of_nothing() -> Self {
        Self { memory_kib: MEMORY_KIB, passes: PASSES, salt: String::new(), hash: String::new() }
    }

    /// Returns a hash that no passphrase matches, whose check takes as long as that of another.
    pub fn of_no_one() -> Self {
        let (salt, hash) = (stdx::hex(&[0; 16]), String::new());
        Self { memory_kib: MEMORY_KIB, passes: PASSES, salt, hash }
    }

    /// Returns true if `text` is the passphrase; `None` if memory is short. Needs the time and
    /// memory of [`Hash::of`].
    pub fn is_of(&self, text: &str) -> Option<bool> {
        let known = stdx::unhex(&self.salt).zip(stdx::unhex(&self.hash));
        let Some((salt, hash)) = known.filter(|(salt, _)| salt.len() >= MIN_SALT_LEN) else {
            return Some(false);
        };
        if text.len() > BYTES_MAX {
            return Some(false);
        }
        let memory = self.memory_kib.min(MEMORY_KIB_MAX);
        let made = compute(text, &salt, memory, self.passes)?;
        Some(made.as_slice().ct_eq(&hash).into())
    }
}

fn compute(text: &str, salt: &[u8], memory: u32, passes: u32) -> Option<[u8; 32]> {
    let params = Params::new(memory, passes, 1, None).ok()?;
    let mut hash = [0; 32];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon.hash_password_into(text.as_bytes(), salt, &mut hash).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::{Hash, check};

    #[test]
    fn only_the_passphrase_opens() {
        let hash = Hash::of("correct horse", [7; 16]).unwrap();
        let kept = serde_json::to_string(&hash).unwrap();
        assert!(!kept.contains("horse"));
        let read: Hash = serde_json::from_str(&kept).unwrap();
        assert_eq!(read.is_of("correct horse"), Some(true));
        assert_eq!(read.is_of("correct horsf"), Some(false));
        assert_eq!(read.is_of(""), Some(false));
        assert_eq!(Hash::of_nothing().is_of("correct horse"), Some(false));
        assert_eq!(Hash::of_no_one().is_of("correct horse"), Some(false));
    }

    #[test]
    fn eight_characters_are_enough() {
        assert!(check("äöüßäöü").is_err());
        assert_eq!(check("äöüßäöüß"), Ok(()));
        assert!(check(&"x".repeat(1025)).is_err());
    }
}
