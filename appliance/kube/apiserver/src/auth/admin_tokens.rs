//! Management of the token file at run time: lists, replaces and revokes tokens.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rbac::MASTERS;
use rbac::bootstrap::USER_ROLES;
use stdx::Secret;

use super::token::{MAX_TOKENS, Token};
use super::{Authenticator, Error, Pki, access as kubeconfig, private_file, token};

/// Minimum hexadecimal digits of an id given to [`AdminTokens::revoke`].
const MIN_PREFIX: usize = 8;
/// Number of hexadecimal digits of [`TokenInfo::id`].
const SHOWN: usize = 12;
/// Name of the user whose token [`AdminTokens::rotate`] replaces.
const ADMIN: &str = "admin";
/// Names that other callers have in audit records: the administrator, the owner of the box on its
/// pages, and actions at the box itself.
const RESERVED: [&str; 5] = [ADMIN, "local", "owner", "root", "system"];
/// Beginning of a token with a role, for programs that search texts for secrets.
const PREFIX: &str = "box_";
/// Maximum length of the name of a token's user in bytes.
const NAME_MAX: usize = 32;

/// Listed token: its user and the beginning of its hash, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TokenInfo {
    /// First 12 hexadecimal digits of the token's SHA-256.
    pub id: String,
    /// Name of the token's user.
    pub user: String,
    /// Groups of the token's user.
    pub groups: Vec<String>,
    /// Time from which the token is not valid; absent for a token without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Time of the last request; absent if there was none since the start of the box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
}

/// Reason why a token was not revoked or replaced.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// No token, or several tokens, have this id.
    #[error(
        "cannot revoke the token {0}: {1} tokens have an id with this beginning; give 8 digits or \
         more of a listed id"
    )]
    NotOne(String, usize),
    /// No administrator would remain.
    #[error("cannot revoke the token {0}: no other administrator token exists; replace this token")]
    Last(String),
    /// The name of the new token's user is not allowed.
    #[error(
        "cannot create a token for {0:?}: expected 1 to 32 lower-case letters, digits, '-' and \
         '.', beginning with a letter, and not the name admin"
    )]
    Name(String),
    /// The new token has a role that does not exist.
    #[error("cannot create a token with the role {0:?}: the roles are viewer, operator and admin")]
    Role(String),
    /// The token file is full.
    #[error("cannot create a token: the box has {MAX_TOKENS} tokens; revoke one first")]
    Full,
    /// Access to a file of the state directory failed.
    #[error(transparent)]
    File(#[from] Error),
}

/// Manager of the token file and of the tokens in memory. Changes run one at a time.
pub struct AdminTokens {
    state: PathBuf,
    ca_pem: String,
    url: String,
    known: Authenticator,
    changing: Mutex<()>,
}

impl AdminTokens {
    /// Makes a manager of the token file in `state` and of the tokens in `known`. `url` is the
    /// box's own URL, for kubeconfigs.
    pub fn new(state: PathBuf, pki: &Pki, url: &str, known: Authenticator) -> Self {
        let (ca_pem, changing) = (pki.ca_pem().to_owned(), Mutex::default());
        Self { state, ca_pem, url: url.to_owned(), known, changing }
    }

    /// Returns all tokens, in the order of the file.
    pub fn list(&self) -> Vec<TokenInfo> {
        self.known.all().iter().map(info).collect()
    }

    /// Replaces the token of the user `admin`; its older tokens become invalid. Writes the
    /// kubeconfig to `STATE/admin.kubeconfig` and returns its text. Blocks on disk writes.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written. The old token then stays valid.
    pub fn rotate(&self) -> Result<Secret, TokenError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = self.text()?;
        let secret = kubeconfig::new_token();
        let line = token::line(secret.expose(), ADMIN);
        let made = kubeconfig::render(&self.url, &self.ca_pem, ADMIN, &secret);
        // The kubeconfig on disk is valid at every moment, even after a power failure.
        self.write(&format!("{text}{line}"))?;
        let path = kubeconfig::path(&self.state);
        private_file::write(&path, &made)?;
        let of_admin = |token: &Token| token.user.name == ADMIN && is_administrator(token);
        let rest = token::without(&text, of_admin);
        self.write(&format!("{rest}{line}"))?;
        Ok(Secret::from(made))
    }

    /// Creates a token with a role and an end, for the user `name`. Returns a kubeconfig with the
    /// token, which is stored nowhere. Blocks on disk writes.
    ///
    /// # Errors
    /// Returns an error if the name or the role is not allowed, if the box has [`MAX_TOKENS`], or
    /// if the token file cannot be written.
    pub fn create(&self, name: &str, role: &str, until: Timestamp) -> Result<Secret, TokenError> {
        if !is_user_name(name) {
            return Err(TokenError::Name(name.to_owned()));
        }
        let group = format!("tinbox:{role}");
        if !USER_ROLES.contains(&group.as_str()) {
            return Err(TokenError::Role(role.to_owned()));
        }
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.known.all().len() >= MAX_TOKENS {
            return Err(TokenError::Full);
        }
        let secret = Secret::from(format!("{PREFIX}{}", kubeconfig::new_token().expose()));
        let line = token::line_until(secret.expose(), name, &group, until);
        self.write(&format!("{}{line}", self.text()?))?;
        Ok(Secret::from(kubeconfig::render(&self.url, &self.ca_pem, name, &secret)))
    }

    /// Revokes the token whose id begins with `id`. Blocks on disk writes.
    ///
    /// # Errors
    /// Returns an error if no token or several tokens match, if no administrator's token would
    /// remain, or if the token file cannot be written.
    pub fn revoke(&self, id: &str) -> Result<TokenInfo, TokenError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.known.all();
        let is_meant = |it: &&Token| id.len() >= MIN_PREFIX && stdx::hex(&it.hash).starts_with(id);
        let mut meant = all.iter().filter(is_meant);
        let (Some(token), None) = (meant.next(), meant.next()) else {
            let count = all.iter().filter(is_meant).count();
            return Err(TokenError::NotOne(id.to_owned(), count));
        };
        let mut others = all.iter().filter(|other| other.hash != token.hash);
        if is_administrator(token) && !others.any(is_administrator) {
            return Err(TokenError::Last(id.to_owned()));
        }
        self.write(&token::without(&self.text()?, |other| other.hash == token.hash))?;
        Ok(info(token))
    }

    fn text(&self) -> Result<String, Error> {
        let mut text = private_file::read(&token::file(&self.state))?.unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }

    fn write(&self, text: &str) -> Result<(), Error> {
        private_file::write(&token::file(&self.state), text)?;
        self.known.replace(Authenticator::load(&self.state)?);
        Ok(())
    }
}

fn info(token: &Token) -> TokenInfo {
    let user = &token.user;
    let groups = user.groups.iter().filter(|group| !group.starts_with("system:auth"));
    TokenInfo {
        id: stdx::hex(&token.hash).chars().take(SHOWN).collect(),
        user: user.name.clone(),
        groups: groups.cloned().collect(),
        until: token.until,
        used: token.used,
    }
}

fn is_administrator(token: &Token) -> bool {
    token.user.is_in(MASTERS)
}

/// Returns true for a name that is valid in the token file and in a kubeconfig.
fn is_user_name(name: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    name.len() <= NAME_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_allowed)
        && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests;
