//! Bearer tokens of the token file. A line has the SHA-256 of a token, the user's name, for users
//! other than administrators the user's groups, and for a token that ends the time of its end:
//!
//! ```text
//! 9f86d081… admin
//! 60303ae2… jane rack-a,rack-b
//! fcde2b2e… ci rack-a until=2027-01-01T00:00:00Z
//! ```
//!
//! A hash without salt is sufficient, because a token has 256 random bits.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use rbac::{MASTERS, User};
use sha2::{Digest as _, Sha256};

use super::{Error, private_file};

/// Beginning of the word with the end of a token.
const UNTIL: &str = "until=";
/// Minimum time between two records of the use of a token, so that requests do not wait for each
/// other.
const NOTED_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// Maximum tokens in the token file.
pub const MAX_TOKENS: usize = 1024;

/// Authenticator for the tokens of the token file. Clones share the list, so a revoked token
/// becomes invalid in all clones.
#[derive(Clone, Default)]
pub struct Authenticator {
    known: Arc<RwLock<TokenTable>>,
}

/// Tokens in the order of the file.
type TokenTable = Vec<Token>;

/// Token of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// User of the token.
    pub user: User,
    /// Time from which the token is not valid; `None` for a token without end.
    pub until: Option<Timestamp>,
    /// Time of the last request with the token; `None` for none since the start of the box.
    pub used: Option<Timestamp>,
}

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
        let token = Token { hash: hash(token), user, until: None, used: None };
        self.known.write().unwrap_or_else(PoisonError::into_inner).push(token);
        self
    }

    /// Replaces all tokens by the tokens of `other`. The times of their last requests stay.
    pub(super) fn replace(&self, other: Self) {
        let mut new = other.all();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for token in &mut new {
            let old = known.iter().find(|old| old.hash == token.hash);
            token.used = old.and_then(|old| old.used);
        }
        *known = new;
    }

    /// Returns all tokens, in the order of the file.
    pub(super) fn all(&self) -> TokenTable {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the user of a bearer token at `now`, and records its use; `None` for a token that is
    /// unknown or has ended. The time does not depend on the token: its hash is compared with every
    /// known hash up to the last byte.
    pub fn user(&self, token: &str, now: Timestamp) -> Option<User> {
        let given = hash(token);
        let (found, is_noted) = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let found = find(&known, &given).map(|at| &known[at])?;
            if found.until.is_some_and(|until| now >= until) {
                return None;
            }
            let noted = found.used.is_some_and(|used| now.duration_since(used) < NOTED_EVERY);
            (found.user.clone(), noted)
        };
        if !is_noted {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = find(&known, &given) {
                known[at].used = Some(now);
            }
        }
        Some(found)
    }
}

/// Returns the place of a hash, after a comparison with all hashes.
fn find(known: &[Token], given: &[u8; 32]) -> Option<usize> {
    let mut found = None;
    for (at, token) in known.iter().enumerate() {
        let difference = token.hash.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
        if difference == 0 {
            found = Some(at);
        }
    }
    found
}

/// Returns the path of the token file in a state directory.
pub(super) fn file(state_dir: &Path) -> PathBuf {
    state_dir.join("tokens")
}

/// Returns the line of the token file for `token`, with its newline.
pub(super) fn line(token: &str, user: &str) -> String {
    format!("{} {user}\n", stdx::hex(&hash(token)))
}

/// Returns the line for the token of a user with one group, and with an end.
pub(super) fn line_until(token: &str, user: &str, group: &str, until: Timestamp) -> String {
    format!("{} {user} {group} {UNTIL}{until}\n", stdx::hex(&hash(token)))
}

/// Returns the text of a token file without the lines of tokens for which `is_out` returns true.
pub(super) fn without(text: &str, is_out: impl Fn(&Token) -> bool) -> String {
    let stays = |line: &&str| !read_line(line).is_some_and(|token| is_out(&token));
    text.lines().filter(stays).map(|line| format!("{line}\n")).collect()
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn read_line(line: &str) -> Option<Token> {
    let mut words = line.split_whitespace().peekable();
    let hash = stdx::unhex(words.next()?)?.try_into().ok()?;
    let name = words.next()?;
    let groups: Vec<String> = match words.next_if(|word| !word.starts_with(UNTIL)) {
        None => vec![MASTERS.to_owned()],
        Some(groups) => groups.split(',').map(str::to_owned).collect(),
    };
    let until = match words.next() {
        None => None,
        Some(word) => Some(word.strip_prefix(UNTIL)?.parse().ok()?),
    };
    let user = User::known(name, groups);
    words.next().is_none().then_some(Token { hash, user, until, used: None })
}
