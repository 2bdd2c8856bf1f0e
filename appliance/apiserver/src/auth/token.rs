//! Bearer tokens. On disk there are only their SHA-256 hashes, one a line with the user's name:
//!
//! ```text
//! 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 admin
//! ```
//!
//! A plain hash is enough: a token is 256 random bits, which no dictionary holds.

use std::path::{Path, PathBuf};

use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use super::{Error, private_file};

/// Tokens one box knows.
pub const MAX_TOKENS: usize = 1024;
/// Longest `Authorization` header that is hashed, in bytes.
const MAX_HEADER: usize = 4096;

/// Who sent a request. Handlers find it in the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name in the token file.
    pub name: String,
}

/// Knows the tokens.
#[derive(Clone, Default)]
pub struct Authenticator {
    known: Vec<([u8; 32], User)>,
}

impl Authenticator {
    /// The tokens in `state_dir`; none when the file is missing.
    ///
    /// # Errors
    /// When the file cannot be read or a line is neither hash and user, nor comment, nor empty.
    pub fn load(state_dir: &Path) -> Result<Self, Error> {
        let path = file(state_dir);
        let text = private_file::read(&path)?.unwrap_or_default();
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let known = lines
            .take(MAX_TOKENS)
            .map(|(at, line)| {
                read_line(line).ok_or_else(|| Error::TokenLine { path: path.clone(), line: at + 1 })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { known })
    }

    /// An authenticator that also knows `token`, as `user`; for tests and tools that keep no state.
    #[must_use]
    pub fn with(mut self, token: &str, user: &str) -> Self {
        self.known.push((hash(token), User { name: user.to_owned() }));
        self
    }

    /// The user behind an `Authorization` header; `None` for a missing or unknown one. Takes the
    /// same time for every token: each known hash is compared to its last byte.
    pub fn authenticate(&self, header: Option<&HeaderValue>) -> Option<User> {
        let bytes = header?.as_bytes();
        let (scheme, token) = bytes.split_at_checked("Bearer ".len())?;
        if bytes.len() > MAX_HEADER || !scheme.eq_ignore_ascii_case(b"Bearer ") {
            return None;
        }
        let given: [u8; 32] = Sha256::digest(token.trim_ascii()).into();
        let mut found = None;
        for (known, user) in &self.known {
            let difference = known.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
            if difference == 0 {
                found = Some(user.clone());
            }
        }
        found
    }
}

/// The token file of a state directory.
pub(super) fn file(state_dir: &Path) -> PathBuf {
    state_dir.join("tokens")
}

/// The line that makes `token` known.
pub(super) fn line(token: &str, user: &str) -> String {
    format!("{} {user}\n", stdx::hex(&hash(token)))
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn read_line(line: &str) -> Option<([u8; 32], User)> {
    let (hash, user) = line.trim().split_once(' ')?;
    let hash = stdx::unhex(hash)?.try_into().ok()?;
    let name = user.trim().to_owned();
    (!name.is_empty()).then_some((hash, User { name }))
}
