//! Owner and other users of the box: claim, login, roles and sessions. A change is on disk before
//! the caller can answer.
//!
//! Never: HTTP, a secret in a log line, direct access to files (persistent data goes through
//! [`PrivateFiles`]).
//!
//! Enter at [`Owner`] (claim, login, proof), [`users`] (users, roles, SSH keys) and
//! [`hash_queue::HashQueue`] (order of the hashing).

pub mod claim;
mod guess_limiter;
pub mod hash_queue;
mod passphrase;
mod proof;
mod session;
pub mod users;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stdx::Clock;

use claim::{ClaimCode, Code, CodeResult};
use guess_limiter::{GuessLimiter, GuessPermission, Limits, Standing};
use passphrase::Hash;
pub use session::PROVED_FOR;
use session::{Session, Sessions};
use users::{OWNER_NAME, USERS, User, UserFile};

/// File with the claim code and the number of wrong tries.
pub const CLAIM: &str = "claim.json";
/// File with the hash of the owner's passphrase. The file exists if the box has an owner.
const OWNER: &str = "owner.json";
/// Limits of wrong passphrases. The limit for all addresses means 6 s of hashing per minute.
const PASSPHRASES: Limits = Limits { each: 10, ever: usize::MAX, all: 120 };

/// Storage for small private files that survive a power cut.
pub trait PrivateFiles: Send + Sync {
    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read.
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the file; the new content is durable when this function returns.
    ///
    /// # Errors
    /// The file cannot be written; the old file stays.
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()>;
}

/// Reason why a claim, a login or a proof is refused.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The box already has an owner.
    #[error("This box already has an owner. Log in with the owner's passphrase.")]
    Claimed,
    /// The box has no owner.
    #[error("This box has no owner yet. Claim it first.")]
    Unclaimed,
    /// The box cannot read the record of its owner.
    #[error(
        "This box cannot read its state volume, so its owner is unknown. The box can be claimed \
         again after a factory reset."
    )]
    Unknown,
    /// The passphrase is not allowed: too short or too long.
    #[error("{0}")]
    Passphrase(&'static str),
    /// The text is not a valid claim code.
    #[error("This is not a valid code: a code has six letters and digits.")]
    NoCode,
    /// The claim code is wrong. Holds the number of tries that the address has left.
    #[error("Wrong code. Tries left for this address: {0}.")]
    WrongCode(usize),
    /// Too many wrong codes came from the address; it may not try again before a restart.
    #[error(
        "Too many wrong codes came from this address. Use another computer or the IPv4 address of \
         the box, or restart the box."
    )]
    Barred,
    /// The code is wrong, and a new code was made.
    #[error("Wrong code, and too many tries: the box has a new code.")]
    Changed,
    /// The passphrase is wrong.
    #[error("Wrong passphrase.")]
    WrongPassphrase,
    /// No user has this name and this passphrase.
    #[error("Wrong name or passphrase.")]
    WrongLogin,
    /// No user besides the owner has this name.
    #[error("There is no user {0}.")]
    NoUser(String),
    /// The user name is not allowed.
    #[error(
        "This is not a valid user name: expected 1 to 32 lower-case letters, digits, '-', '.' and \
         '_', beginning with a letter."
    )]
    UserName,
    /// Another user or the box itself has this name.
    #[error("The user name {0} is taken.")]
    Taken(String),
    /// The box has [`users::USERS_MAX`] users.
    #[error("The box has 64 users. Remove one first.")]
    TooManyUsers,
    /// A line is not an SSH public key, or there are too many.
    #[error("{0}")]
    SshKey(String),
    /// The file of the users cannot be read.
    #[error("The file of the users is damaged, so users cannot be changed. Restore a backup.")]
    Damaged,
    /// The session has no recent proof of the passphrase.
    #[error("You entered your passphrase more than 5 minutes ago. Enter the passphrase again.")]
    Unproved,
    /// The address must wait this many seconds.
    #[error("Too many wrong tries. Wait {0} s.")]
    Wait(u64),
    /// The queue of passphrases to hash is full or too slow, or memory is short.
    #[error("The box is busy. Try again.")]
    Busy,
    /// The state of the owner cannot be written to disk.
    #[error("The box cannot write to its disk, so nothing was changed. The log has the reason.")]
    Disk(#[source] io::Error),
}

/// Session that a claim or a login created.
pub struct NewSession {
    /// Value of the session's cookie.
    pub token: String,
}

/// User of a session, as stored now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionUser {
    /// User who logged in.
    pub user: User,
    /// CSRF token of the session, which its forms contain.
    pub csrf: String,
}

/// Callback that gets each correct or new passphrase of the owner.
type OnPassphrase = Box<dyn Fn(&str) + Send + Sync>;

/// Owner of the box, or the claim code of an unclaimed box.
pub struct Owner {
    keep: Arc<dyn PrivateFiles>,
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
    /// True if the record of the owner cannot be read; the box cannot be claimed then.
    unknown: bool,
    on_passphrase: Option<OnPassphrase>,
}

struct Inner {
    hash: Option<Hash>,
    users: UserFile,
    /// True if the file of the users cannot be read: no user besides the owner can log in.
    users_damaged: bool,
    lock: ClaimCode,
    /// Limiter of wrong claim codes.
    codes: GuessLimiter,
    sessions: Sessions,
    /// Limiter of wrong passphrases.
    passphrases: GuessLimiter,
}

impl Owner {
    /// Reads the stored state. A box without stored state gets a new claim code.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn open(keep: Arc<dyn PrivateFiles>, clock: Arc<dyn Clock>) -> io::Result<Self> {
        // An unreadable record counts as an owner without a passphrase: the box cannot be claimed
        // by damaging the file.
        let unreadable = |error| {
            tracing::error!(%error, file = OWNER, "the record of the owner is damaged");
            Hash::of_nothing()
        };
        let hash = keep.load(OWNER)?;
        let hash = hash.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_else(unreadable));
        let (users, users_damaged) = match keep.load(USERS)?.map(|it| serde_json::from_slice(&it)) {
            None => (UserFile::default(), false),
            Some(Ok(users)) => (users, false),
            Some(Err(error)) => {
                tracing::error!(%error, file = USERS, "the record of the users is damaged");
                (UserFile::default(), true)
            }
        };
        let kept = keep.load(CLAIM)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let lock = match kept {
            Some(lock) => lock,
            None => {
                let lock = ClaimCode::new(fresh());
                keep.replace(CLAIM, &serde_json::to_vec(&lock)?)?;
                lock
            }
        };
        let (codes, passphrases) =
            (GuessLimiter::new(claim::LIMITS), GuessLimiter::new(PASSPHRASES));
        let sessions = Sessions::default();
        let inner = Inner { hash, users, users_damaged, lock, codes, sessions, passphrases };
        Ok(Self { keep, clock, inner: Mutex::new(inner), unknown: false, on_passphrase: None })
    }

    /// Marks the owner's record as unreadable: the box has no owner and cannot be claimed.
    pub fn out_of_reach(self) -> Self {
        Self { unknown: true, ..self }
    }

    /// Sets a callback that gets the owner's passphrase after each successful login, claim and
    /// change.
    pub fn on_passphrase(self, act: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { on_passphrase: Some(Box::new(act)), ..self }
    }

    fn passphrase_given(&self, passphrase: &str) {
        if let Some(act) = &self.on_passphrase {
            act(passphrase);
        }
    }

    /// Returns true if the box cannot read the record of its owner.
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the code and the number of wrong codes still allowed. Returns `None` if the box has
    /// an owner, or cannot be claimed.
    pub fn code(&self) -> Option<(String, u32)> {
        let inner = self.inner();
        (inner.hash.is_none() && !self.unknown).then(|| (inner.lock.code.text(), inner.lock.left()))
    }

    /// Returns true if the box has an owner.
    pub fn claimed(&self) -> bool {
        self.inner().hash.is_some()
    }

    /// Returns the class of an address, which decides its place in the hash queue.
    pub fn standing(&self, from: IpAddr) -> Standing {
        let (now, mut inner) = (self.clock.steady(), self.inner());
        match inner.hash {
            Some(_) => inner.passphrases.standing(from, now),
            None => inner.codes.standing(from, now),
        }
    }

    /// Claims the box: stores the passphrase, begins a session. Blocks: it hashes and writes to
    /// disk.
    ///
    /// # Errors
    /// The claim is refused. A wrong code counts as a try, which is on disk before the function
    /// returns; no other error counts.
    pub fn claim(
        &self,
        code: &str,
        passphrase: &str,
        from: IpAddr,
    ) -> Result<NewSession, AccessError> {
        passphrase::check(passphrase).map_err(AccessError::Passphrase)?;
        let code = Code::typed(code).ok_or(AccessError::NoCode)?;
        // Held to the end, so that only one of two parallel claims succeeds.
        let mut inner = self.inner();
        self.attempt(&mut inner, &code, from)?;
        let hash = Hash::of(passphrase, chance()).ok_or(AccessError::Busy)?;
        let bytes = serde_json::to_vec(&hash).map_err(io::Error::from);
        let kept = bytes.and_then(|bytes| self.keep.replace(OWNER, &bytes));
        kept.map_err(AccessError::Disk)?;
        inner.hash = Some(hash);
        self.passphrase_given(passphrase);
        Ok(self.begin(&mut inner, OWNER_NAME))
    }

    /// Checks the claim code of an unclaimed box, as proof that the client can see its screen.
    /// Blocks: it may write to disk.
    ///
    /// # Errors
    /// The code is refused as by [`Owner::claim`]. A correct code stays valid.
    pub fn prove(&self, code: &str, from: IpAddr) -> Result<(), AccessError> {
        let code = Code::typed(code).ok_or(AccessError::NoCode)?;
        self.attempt(&mut self.inner(), &code, from)
    }

    fn attempt(&self, inner: &mut Inner, code: &Code, from: IpAddr) -> Result<(), AccessError> {
        if self.unknown {
            return Err(AccessError::Unknown);
        }
        if inner.hash.is_some() {
            return Err(AccessError::Claimed);
        }
        let now = self.clock.steady();
        match inner.codes.leave(from, now) {
            GuessPermission::Allowed => {}
            GuessPermission::Wait(seconds) => return Err(AccessError::Wait(seconds)),
            GuessPermission::Never => return Err(AccessError::Barred),
        }
        let answer = inner.lock.attempt(code, fresh());
        if answer == CodeResult::Right {
            return Ok(());
        }
        inner.codes.wrong(from, now);
        let bytes = serde_json::to_vec(&inner.lock).map_err(io::Error::from);
        let kept = bytes.and_then(|bytes| self.keep.replace(CLAIM, &bytes));
        kept.map_err(AccessError::Disk)?;
        if answer == CodeResult::Changed {
            inner.codes.clear();
            return Err(AccessError::Changed);
        }
        Err(AccessError::WrongCode(inner.codes.left(from)))
    }

    /// Logs a user in and starts a session. An empty name means the owner. Blocks: it hashes.
    ///
    /// # Errors
    /// The login is refused. A wrong name or passphrase counts as a try of the address.
    pub fn enter(
        &self,
        name: &str,
        passphrase: &str,
        from: IpAddr,
    ) -> Result<NewSession, AccessError> {
        let name = users::typed_name(name);
        let verified = self.verify(&name, passphrase, from);
        let mut inner = verified.map_err(|refusal| match refusal {
            AccessError::WrongPassphrase if name != OWNER_NAME => AccessError::WrongLogin,
            other => other,
        })?;
        if name == OWNER_NAME {
            self.passphrase_given(passphrase);
        }
        Ok(self.begin(&mut inner, &name))
    }

    fn begin(&self, inner: &mut Inner, name: &str) -> NewSession {
        let token = stdx::random_hex(32);
        let new = Session::new(name.to_owned(), stdx::random_hex(16), self.clock.steady());
        inner.sessions.begin(&token, new);
        NewSession { token }
    }

    /// Returns the user of a session and prolongs the session; `None` if it does not exist.
    pub fn session(&self, token: &str) -> Option<SessionUser> {
        let now = self.clock.steady();
        let mut inner = self.inner();
        let (name, csrf) = inner.sessions.find(token, now)?;
        Some(SessionUser { user: inner.users.user(&name)?, csrf })
    }

    /// Returns the user of a session, as [`Self::session`]. Does not prolong the session.
    pub fn session_user(&self, token: &str) -> Option<SessionUser> {
        let now = self.clock.steady();
        let inner = self.inner();
        let (name, csrf) = inner.sessions.get(token, now)?;
        Some(SessionUser { user: inner.users.user(&name)?, csrf })
    }

    /// Ends the session with this token.
    pub fn leave(&self, token: &str) {
        self.inner().sessions.end(token);
    }
}

fn fresh() -> Code {
    Code::of(chance())
}

fn chance<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel always has random bytes");
    bytes
}

#[cfg(test)]
mod tests;
