//! Sessions of logged-in browsers. Sessions are in memory only, so a restart ends all of them.

use std::collections::HashMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// Maximum number of sessions; at the limit, a new session ends the least recently used session.
pub const SESSIONS_MAX: usize = 64;
/// Time after which an unused session ends.
pub const IDLE: Duration = Duration::from_secs(12 * 3600);
/// Time for which a passphrase that was entered in a session counts as proof.
pub const PROVED_FOR: Duration = Duration::from_secs(5 * 60);

/// Sessions by the hash of their token, so that the time of a lookup reveals nothing about tokens.
#[derive(Default)]
pub struct Sessions(HashMap<[u8; 32], Session>);

struct Session {
    used: Duration,
    /// Time at which the passphrase was last entered.
    proved: Duration,
    csrf: String,
}

impl Sessions {
    /// Starts a session. `token` and `csrf` are random bytes in hexadecimal.
    pub fn begin(&mut self, token: &str, csrf: String, now: Duration) {
        self.0.retain(|_, session| now.saturating_sub(session.used) < IDLE);
        if self.0.len() >= SESSIONS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, it)| it.used).map(|(key, _)| *key);
            oldest.and_then(|key| self.0.remove(&key));
        }
        self.0.insert(Sha256::digest(token).into(), Session { used: now, proved: now, csrf });
    }

    /// Returns the session's CSRF token and prolongs the session; `None` if it does not exist.
    pub fn find(&mut self, token: &str, now: Duration) -> Option<String> {
        let key: [u8; 32] = Sha256::digest(token).into();
        let session = self.0.get_mut(&key)?;
        if now.saturating_sub(session.used) >= IDLE {
            self.0.remove(&key);
            return None;
        }
        session.used = now;
        Some(session.csrf.clone())
    }

    /// Returns true if the session exists. Does not prolong the session.
    pub fn lives(&self, token: &str, now: Duration) -> bool {
        self.csrf(token, now).is_some()
    }

    /// Returns the CSRF token of a session. Does not prolong the session.
    pub fn csrf(&self, token: &str, now: Duration) -> Option<String> {
        let session = self.0.get(&<[u8; 32]>::from(Sha256::digest(token)))?;
        (now.saturating_sub(session.used) < IDLE).then(|| session.csrf.clone())
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

    /// Ends all sessions except the session with this token.
    pub fn end_others(&mut self, token: &str) {
        let stays: [u8; 32] = Sha256::digest(token).into();
        self.0.retain(|key, _| *key == stays);
    }

    /// Ends the session with this token.
    pub fn end(&mut self, token: &str) {
        self.0.remove(&<[u8; 32]>::from(Sha256::digest(token)));
    }
}

#[cfg(test)]
mod tests {
    use super::{IDLE, SESSIONS_MAX, Sessions};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_session_ends_unused_or_crowded_out() {
        let mut sessions = Sessions::default();
        sessions.begin("a", "forms".to_owned(), SECOND);
        assert_eq!(sessions.find("a", IDLE).as_deref(), Some("forms"));
        assert_eq!(sessions.find("b", IDLE), None);
        assert_eq!(sessions.find("a", IDLE + IDLE), None);
        for nth in 0..=SESSIONS_MAX {
            let now = SECOND * u32::try_from(nth).unwrap();
            sessions.begin(&nth.to_string(), String::new(), now);
        }
        assert_eq!(sessions.find("0", SECOND), None);
        assert!(sessions.find("1", SECOND).is_some());
        sessions.end("1");
        assert_eq!(sessions.find("1", SECOND), None);
    }
}
