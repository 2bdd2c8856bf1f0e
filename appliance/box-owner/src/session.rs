//! Sessions of logged-in browsers. Sessions are in memory only, so a restart ends all of them.

use std::collections::HashMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// Maximum number of sessions of one user; at the limit, a new session ends the user's least
/// recently used session. A user cannot end the sessions of others by many logins.
pub const SESSIONS_MAX: usize = 16;
/// Time after which an unused session ends.
pub const IDLE: Duration = Duration::from_secs(12 * 3600);
/// Time for which a passphrase that was entered in a session counts as proof.
pub const PROVED_FOR: Duration = Duration::from_secs(5 * 60);

/// Sessions by the hash of their token, so that the time of a lookup reveals nothing about tokens.
#[derive(Default)]
pub struct Sessions(HashMap<[u8; 32], Session>);

/// Session of one browser, as kept in memory.
pub struct Session {
    /// Name of the user who logged in.
    user: String,
    used: Duration,
    /// Time at which the passphrase was last entered.
    proved: Duration,
    csrf: String,
}

impl Session {
    /// Creates a session that begins at `now`. `csrf` is random bytes in hexadecimal.
    pub fn new(user: String, csrf: String, now: Duration) -> Self {
        Self { user, used: now, proved: now, csrf }
    }
}

impl Sessions {
    /// Starts a session. `token` is random bytes in hexadecimal.
    pub fn begin(&mut self, token: &str, new: Session) {
        let now = new.used;
        self.0.retain(|_, session| now.saturating_sub(session.used) < IDLE);
        let own = || self.0.iter().filter(|(_, session)| session.user == new.user);
        if own().count() >= SESSIONS_MAX {
            let oldest = own().min_by_key(|(_, it)| it.used).map(|(key, _)| *key);
            oldest.and_then(|key| self.0.remove(&key));
        }
        self.0.insert(Sha256::digest(token).into(), new);
    }

    /// Returns user name and CSRF token of a session and prolongs the session; `None` if it does
    /// not exist.
    pub fn find(&mut self, token: &str, now: Duration) -> Option<(String, String)> {
        let key: [u8; 32] = Sha256::digest(token).into();
        let session = self.0.get_mut(&key)?;
        if now.saturating_sub(session.used) >= IDLE {
            self.0.remove(&key);
            return None;
        }
        session.used = now;
        Some((session.user.clone(), session.csrf.clone()))
    }

    /// Returns user name and CSRF token of a session. Does not prolong the session.
    pub fn get(&self, token: &str, now: Duration) -> Option<(String, String)> {
        let session = self.0.get(&<[u8; 32]>::from(Sha256::digest(token)))?;
        let lives = now.saturating_sub(session.used) < IDLE;
        lives.then(|| (session.user.clone(), session.csrf.clone()))
    }

    /// Returns true if the passphrase was entered in this session within the last [`PROVED_FOR`].
    pub fn is_proved(&self, token: &str, now: Duration) -> bool {
        let session = self.0.get(&<[u8; 32]>::from(Sha256::digest(token)));
        session.is_some_and(|session| now.saturating_sub(session.proved) < PROVED_FOR)
    }

    /// Records at `now` that the passphrase was entered in the session.
    pub fn prove(&mut self, token: &str, now: Duration) {
        if let Some(session) = self.0.get_mut(&<[u8; 32]>::from(Sha256::digest(token))) {
            session.proved = now;
        }
    }

    /// Ends all sessions of a user except the session with this token.
    pub fn end_others(&mut self, user: &str, token: &str) {
        let stays: [u8; 32] = Sha256::digest(token).into();
        self.0.retain(|key, session| *key == stays || session.user != user);
    }

    /// Ends all sessions of a user.
    pub fn end_of(&mut self, user: &str) {
        self.0.retain(|_, session| session.user != user);
    }

    /// Ends the session with this token.
    pub fn end(&mut self, token: &str) {
        self.0.remove(&<[u8; 32]>::from(Sha256::digest(token)));
    }
}

#[cfg(test)]
mod tests {
    use super::{IDLE, SESSIONS_MAX, Session, Sessions};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    fn session(user: &str, now: Duration) -> Session {
        Session::new(user.to_owned(), "forms".to_owned(), now)
    }

    #[test]
    fn a_session_ends_unused_or_crowded_out() {
        let mut sessions = Sessions::default();
        sessions.begin("a", session("jane", SECOND));
        assert_eq!(sessions.find("a", IDLE), Some(("jane".to_owned(), "forms".to_owned())));
        assert_eq!(sessions.find("b", IDLE), None);
        assert_eq!(sessions.find("a", IDLE + IDLE), None);
        sessions.begin("joe", session("joe", Duration::ZERO));
        for nth in 0..=SESSIONS_MAX {
            let now = SECOND * u32::try_from(nth).unwrap();
            sessions.begin(&nth.to_string(), session("jane", now));
        }
        assert!(sessions.find("joe", SECOND).is_some(), "another user's session");
        assert_eq!(sessions.find("0", SECOND), None);
        assert!(sessions.find("1", SECOND).is_some());
        sessions.end("1");
        assert_eq!(sessions.find("1", SECOND), None);
    }

    #[test]
    fn the_sessions_of_one_user_end_and_no_others() {
        let mut sessions = Sessions::default();
        for (token, user) in [("a", "jane"), ("b", "jane"), ("c", "joe")] {
            sessions.begin(token, session(user, SECOND));
        }
        sessions.end_others("jane", "b");
        let lives =
            |sessions: &Sessions| ["a", "b", "c"].map(|it| sessions.get(it, SECOND).is_some());
        assert_eq!(lives(&sessions), [false, true, true]);
        sessions.end_of("jane");
        assert_eq!(lives(&sessions), [false, false, true]);
    }
}
