//! Proof of a user's passphrase within a session, and change of the passphrase. The proof is
//! required before keys are sent or data is erased.

use std::io;
use std::net::IpAddr;
use std::sync::MutexGuard;

use super::{AccessError, Inner, OWNER, Owner, chance};
use crate::guess_limiter::GuessPermission;
use crate::passphrase::{self, Hash};
use crate::users::OWNER_NAME;

impl Owner {
    /// Returns true if the passphrase was entered in this session within the last
    /// [`PROVED_FOR`](crate::session::PROVED_FOR).
    pub fn is_proved(&self, token: &str) -> bool {
        let now = self.clock.steady();
        self.inner().sessions.is_proved(token, now)
    }

    /// Checks the passphrase and renews the proof of the session `token`. Blocks: it hashes.
    ///
    /// # Errors
    /// The passphrase is wrong (counts as a failed login of the address), or the check is refused.
    pub fn prove_again(
        &self,
        token: &str,
        passphrase: &str,
        from: IpAddr,
    ) -> Result<(), AccessError> {
        let name = self.user_of(token)?;
        self.verify(&name, passphrase, from)?.sessions.prove(token, self.clock.steady());
        Ok(())
    }

    /// Changes the passphrase of the session's user and ends the user's other sessions. Blocks: it
    /// hashes and writes to disk.
    ///
    /// # Errors
    /// The change is refused or cannot be saved. The old passphrase and all sessions stay.
    pub fn change_passphrase(
        &self,
        token: &str,
        (old, new): (&str, &str),
        from: IpAddr,
    ) -> Result<(), AccessError> {
        passphrase::check(new).map_err(AccessError::Passphrase)?;
        let name = self.user_of(token)?;
        // Checked before the new passphrase is hashed, so that the limit of wrong tries holds for
        // both hashes.
        let old_hash = self.verify(&name, old, from)?.hash_of(&name);
        let hash = Hash::of(new, chance()).ok_or(AccessError::Busy)?;
        // Held to the end, so that no session begins with the old passphrase after the change.
        let mut inner = self.inner();
        // Another session may have changed the passphrase while the new one was hashed.
        if inner.hash_of(&name) != old_hash {
            return Err(AccessError::WrongPassphrase);
        }
        if name == OWNER_NAME {
            let bytes = serde_json::to_vec(&hash).map_err(io::Error::from);
            let kept = bytes.and_then(|bytes| self.keep.replace(OWNER, &bytes));
            kept.map_err(AccessError::Disk)?;
            inner.hash = Some(hash);
            self.passphrase_given(new);
        } else {
            self.set_hash(&mut inner, &name, hash)?;
        }
        inner.sessions.end_others(&name, token);
        inner.sessions.prove(token, self.clock.steady());
        Ok(())
    }

    fn user_of(&self, token: &str) -> Result<String, AccessError> {
        self.session_user(token).map(|it| it.user.name).ok_or(AccessError::WrongPassphrase)
    }

    /// Verifies the passphrase of a user and returns the locked state: the passphrase cannot change
    /// meanwhile. An unknown name takes the same time.
    pub(super) fn verify(
        &self,
        name: &str,
        passphrase: &str,
        from: IpAddr,
    ) -> Result<MutexGuard<'_, Inner>, AccessError> {
        let now = self.clock.steady();
        let hash = {
            let mut inner = self.inner();
            if let GuessPermission::Wait(seconds) = inner.passphrases.leave(from, now) {
                return Err(AccessError::Wait(seconds));
            }
            if inner.hash.is_none() {
                return Err(AccessError::Unclaimed);
            }
            let hash = inner.hash_of(name);
            // The try is counted before the check, so that parallel requests cannot exceed the
            // limit.
            inner.passphrases.wrong(from, now);
            hash
        };
        let is_right = hash.as_ref().unwrap_or(&Hash::of_no_one()).is_of(passphrase);
        let mut inner = self.inner();
        let Some(is_right) = is_right else {
            inner.passphrases.take_back(from);
            return Err(AccessError::Busy);
        };
        // The passphrase may have changed during the check.
        if !is_right || hash.is_none() || inner.hash_of(name) != hash {
            return Err(AccessError::WrongPassphrase);
        }
        inner.passphrases.right(from, true);
        Ok(inner)
    }
}

impl Inner {
    /// Returns the hash of a user's passphrase; `None` for an unknown user.
    fn hash_of(&self, name: &str) -> Option<Hash> {
        if name == OWNER_NAME { self.hash.clone() } else { self.users.hash(name) }
    }
}
