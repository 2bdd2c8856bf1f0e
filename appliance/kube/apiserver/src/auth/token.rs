//! Bearer tokens of the token file. A line has the SHA-256 of a token, the user's name and, for
//! users other than administrators, the user's groups:
//!
//! ```text
//! 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 admin
//! 60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752 jane rack-a,rack-b
//! ```
//!
//! A hash without salt is sufficient, because a token has 256 random bits.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rbac::{MASTERS, User};
use sha2::{Digest as _, Sha256};

use super::{Error, private_file};

/// Maximum tokens in the token file.
pub const MAX_TOKENS: usize = 1024;

/// Authenticator for the tokens of the token file. Clones share the list, so a revoked token
/// becomes invalid in all clones.
#[derive(Clone, Default)]
pub struct Authenticator {
    known: Arc<RwLock<TokenTable>>,
}

/// Hashes of tokens, each with its user.
type TokenTable = Vec<([u8; 32], User)>;

impl Authenticator {
    /// Loads the token file in `state_dir`; an empty list if the file is missing.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a line is not a hash and a user, a
    /// comment (`#`) or empty.
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
            .collect::<Result<TokenTable, Error>>()?;
        Ok(Self { known: Arc::new(RwLock::new(known)) })
    }

    /// Returns true if `text` is a valid token file with at least one token.
    pub fn has_tokens(text: &str) -> bool {
        let mut lines = text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
            .peekable();
        lines.peek().is_some() && lines.all(|line| read_line(line).is_some())
    }

    /// Adds `token` for the administrator `user`, in memory only, for tests and tools.
    #[must_use]
    pub fn with(self, token: &str, user: &str) -> Self {
        self.with_user(token, User::known(user, [MASTERS.to_owned()]))
    }

    /// Adds `token` for `user`, in memory only.
    #[must_use]
    pub fn with_user(self, token: &str, user: User) -> Self {
        self.known.write().unwrap_or_else(PoisonError::into_inner).push((hash(token), user));
        self
    }

    /// Replaces all tokens by the tokens of `other`.
    pub(super) fn replace(&self, other: Self) {
        let new = other.all();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// Returns the hashes and users of all tokens.
    pub(super) fn all(&self) -> TokenTable {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the user of a bearer token; `None` for an unknown token. The time does not depend on
    /// the token: its hash is compared with every known hash up to the last byte.
    pub fn user(&self, token: &str) -> Option<User> {
        let given = hash(token);
        let mut found = None;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for (known, user) in &*known {
            let difference = known.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
            if difference == 0 {
                found = Some(user.clone());
            }
        }
        found
    }
}

/// Returns the path of the token file in a state directory.
pub(super) fn file(state_dir: &Path) -> PathBuf {
    state_dir.join("tokens")
}

/// Returns the line of the token file for `token`, with its newline.
pub(super) fn line(token: &str, user: &str) -> String {
    format!("{} {user}\n", stdx::hex(&hash(token)))
}

/// Returns the text of a token file without the lines of tokens for which `is_out` returns true.
pub(super) fn without(text: &str, is_out: impl Fn(&[u8; 32], &User) -> bool) -> String {
    let stays = |line: &&str| !read_line(line).is_some_and(|(hash, user)| is_out(&hash, &user));
    text.lines().filter(stays).map(|line| format!("{line}\n")).collect()
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn read_line(line: &str) -> Option<([u8; 32], User)> {
    let mut words = line.split_whitespace();
    let hash = stdx::unhex(words.next()?)?.try_into().ok()?;
    let name = words.next()?;
    let groups: Vec<String> = match words.next() {
        None => vec![MASTERS.to_owned()],
        Some(groups) => groups.split(',').map(str::to_owned).collect(),
    };
    words.next().is_none().then(|| (hash, User::known(name, groups)))
}
