//! Proof of the owner's passphrase within a session, and change of the passphrase. The proof is
//! required before keys are sent or data is erased.

use std::io;
use std::net::IpAddr;
use std::sync::MutexGuard;

use super::{AccessError, Inner, OWNER, Owner, chance};
use crate::guess_limiter::GuessPermission;
use crate::passphrase::{self, Hash};

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
        self.verify(passphrase, from)?.sessions.prove(token, self.clock.steady());
        Ok(())
    }

    /// Changes the passphrase and ends other sessions. Blocks: it hashes and writes to disk.
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

    /// Verifies the passphrase and returns the locked state: the passphrase cannot change
    /// meanwhile.
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
