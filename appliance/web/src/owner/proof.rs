//! Proof of the owner's passphrase within a session, required before keys leave the box or data is
//! erased; and its change.

use std::io;
use std::net::IpAddr;
use std::sync::MutexGuard;

use super::{AccessError, Inner, OWNER, Owner, chance};
use crate::owner::guess_limiter::GuessPermission;
use crate::owner::passphrase::{self, Hash};

impl Owner {
    /// Returns true while the session's passphrase was given within
    /// [`PROVED_FOR`](crate::owner::session::PROVED_FOR).
    pub fn is_proved(&self, token: &str) -> bool {
        let now = self.clock.steady();
        self.inner().sessions.is_proved(token, now)
    }

    /// Checks the passphrase of the session with this token again. Blocks: it hashes.
    ///
    /// # Errors
    /// Why not; a wrong one counts as a wrong login of the address.
    pub fn prove_again(
        &self,
        token: &str,
        passphrase: &str,
        from: IpAddr,
    ) -> Result<(), AccessError> {
        self.verify(passphrase, from)?.sessions.prove(token, self.clock.steady());
        Ok(())
    }

    /// Changes the passphrase and ends every session but the one with this token. Blocks: it
    /// hashes and writes to disk.
    ///
    /// # Errors
    /// Why not; the old passphrase stays then, with all sessions.
    pub fn change_passphrase(
        &self,
        token: &str,
        (old, new): (&str, &str),
        from: IpAddr,
    ) -> Result<(), AccessError> {
        passphrase::check(new).map_err(AccessError::Passphrase)?;
        let hash = Hash::of(new, chance()).ok_or(AccessError::Busy)?;
        // Held to the end, so that no session begins with the old passphrase after the change.
        let mut inner = self.verify(old, from)?;
        let bytes = serde_json::to_vec(&hash).map_err(io::Error::from);
        let kept = bytes.and_then(|bytes| self.keep.replace(OWNER, &bytes));
        kept.map_err(AccessError::Disk)?;
        inner.hash = Some(hash);
        self.passphrase_given(new);
        inner.sessions.end_others(token);
        inner.sessions.prove(token, self.clock.steady());
        Ok(())
    }

    /// Verifies the passphrase and returns the locked state, in which it is still valid.
    pub(super) fn verify(
        &self,
        passphrase: &str,
        from: IpAddr,
    ) -> Result<MutexGuard<'_, Inner>, AccessError> {
        let now = self.clock.steady();
        let hash = {
            let mut inner = self.inner();
            if let GuessPermission::Wait(seconds) = inner.passphrases.leave(from, now) {
                return Err(AccessError::Wait(seconds));
            }
            let hash = inner.hash.clone().ok_or(AccessError::Unclaimed)?;
            // The try is counted before the check, so that parallel requests cannot exceed the
            // limit.
            inner.passphrases.wrong(from, now);
            hash
        };
        let is_right = hash.is_of(passphrase);
        let mut inner = self.inner();
        // The passphrase may have changed during the check.
        if !is_right || inner.hash.as_ref() != Some(&hash) {
            return Err(AccessError::WrongPassphrase);
        }
        inner.passphrases.right(from, true);
        Ok(inner)
    }
}
