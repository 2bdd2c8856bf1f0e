//! Management of the token file at run time: lists, replaces and revokes tokens.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rbac::MASTERS;
use stdx::Secret;

use super::{Authenticator, Error, Pki, access as kubeconfig, private_file, token};

/// Minimum hexadecimal digits of an id given to [`AdminTokens::revoke`].
const MIN_PREFIX: usize = 8;
/// Number of hexadecimal digits of [`TokenInfo::id`].
const SHOWN: usize = 12;
/// Name of the user whose token [`AdminTokens::rotate`] replaces.
const ADMIN: &str = "admin";

/// Listed token: its user and the beginning of its hash, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TokenInfo {
    /// First 12 hexadecimal digits of the token's SHA-256.
    pub id: String,
    /// Name of the token's user.
    pub user: String,
    /// Groups of the token's user.
    pub groups: Vec<String>,
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
        self.known.all().into_iter().map(|(hash, user)| info(&hash, user)).collect()
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
        let made = kubeconfig::render(&self.url, &self.ca_pem, &secret);
        // The kubeconfig on disk is valid at every moment, even after a power failure.
        self.write(&format!("{text}{line}"))?;
        let path = kubeconfig::path(&self.state);
        private_file::write(&path, &made)?;
        let of_admin = |user: &rbac::User| user.name == ADMIN && is_administrator(user);
        let rest = token::without(&text, |_, user| of_admin(user));
        self.write(&format!("{rest}{line}"))?;
        Ok(Secret::from(made))
    }

    /// Revokes the token whose id begins with `id`. Blocks on disk writes.
    ///
    /// # Errors
    /// Returns an error if no token or several tokens match, if no administrator's token would
    /// remain, or if the token file cannot be written.
    pub fn revoke(&self, id: &str) -> Result<TokenInfo, TokenError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.known.all();
        let is_meant = |hash: &[u8; 32]| id.len() >= MIN_PREFIX && stdx::hex(hash).starts_with(id);
        let mut meant = all.iter().filter(|(hash, _)| is_meant(hash));
        let (Some((hash, user)), None) = (meant.next(), meant.next()) else {
            let count = all.iter().filter(|(hash, _)| is_meant(hash)).count();
            return Err(TokenError::NotOne(id.to_owned(), count));
        };
        let mut others = all.iter().filter(|(other, _)| other != hash);
        if is_administrator(user) && !others.any(|(_, user)| is_administrator(user)) {
            return Err(TokenError::Last(id.to_owned()));
        }
        self.write(&token::without(&self.text()?, |other, _| other == hash))?;
        Ok(info(hash, user.clone()))
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

fn info(hash: &[u8; 32], user: rbac::User) -> TokenInfo {
    let id = stdx::hex(hash).chars().take(SHOWN).collect();
    let groups = user.groups.into_iter().filter(|group| !group.starts_with("system:auth"));
    TokenInfo { id, user: user.name, groups: groups.collect() }
}

fn is_administrator(user: &rbac::User) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::{AdminTokens, TokenError};
    use crate::auth::{AdminAccess, Authenticator, Pki};

    const URL: &str = "https://10.0.0.1:6443";

    fn token_in(kubeconfig: &str) -> String {
        let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: "));
        line.unwrap().to_owned()
    }

    #[test]
    fn a_token_that_was_replaced_or_revoked_lets_nobody_in_and_the_last_stays() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let pki = Pki::ensure(state, &[], Timestamp::now()).unwrap();
        let access = AdminAccess::ensure(state, &pki, URL).unwrap();
        let old = token_in(&fs::read_to_string(&access.kubeconfig).unwrap());
        let tokens = state.join("tokens");
        let jane = format!("{} jane rack-a\n", "60".repeat(32));
        let text = fs::read_to_string(&tokens).unwrap();
        fs::write(&tokens, format!("# by hand\n{text}{jane}")).unwrap();

        let known = Authenticator::load(state).unwrap();
        // A clone, such as the one in the API's authentication layer.
        let gate = known.clone();
        let admin = AdminTokens::new(state.to_owned(), &pki, URL, known);
        let names = |admin: &AdminTokens| -> Vec<String> {
            admin.list().into_iter().map(|token| token.user).collect()
        };
        assert_eq!(names(&admin), ["admin", "jane"]);

        let made = admin.rotate().unwrap();
        let new = token_in(made.expose());
        assert!(gate.user(&old).is_none(), "the old token");
        assert_eq!(gate.user(&new).unwrap().name, "admin");
        assert_eq!(fs::read_to_string(&access.kubeconfig).unwrap(), made.expose());
        let text = fs::read_to_string(&tokens).unwrap();
        assert!(text.starts_with("# by hand\n") && text.contains(&jane), "{text}");
        assert_eq!(names(&admin), ["jane", "admin"]);

        let list = admin.list();
        assert!(matches!(admin.revoke("60"), Err(TokenError::NotOne(..))));
        assert_eq!(admin.revoke(&list[0].id).unwrap().user, "jane");
        assert!(matches!(admin.revoke(&list[1].id), Err(TokenError::Last(_))));
        assert_eq!(names(&admin), ["admin"]);
        let read = Authenticator::load(state).unwrap();
        assert!(read.user(&new).is_some() && read.user(&old).is_none(), "after a restart");
    }
}
