//! The one who owns the box: how it gets one, and how they come in again. Holds the state that
//! [`crate::claim`] and [`crate::session`] decide over, and has it kept before it answers.

mod proof;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stdx::Clock;

use crate::claim::{self, Answer, Code, Lock};
use crate::guesses::{Guesses, Leave, Limits, Standing};
use crate::passphrase::{self, Hash};
use crate::session::Sessions;

/// The code and its tries.
const CLAIM: &str = "claim.json";
/// The owner's passphrase as a hash; its presence says that there is an owner.
const OWNER: &str = "owner.json";
/// Wrong passphrases. Those of all addresses take a processor for six seconds of a minute.
const PASSPHRASES: Limits = Limits { each: 10, ever: usize::MAX, all: 120 };

/// Small files that survive a power cut, for nobody else's eyes.
pub trait Keep: Send + Sync {
    /// What is kept by this name.
    ///
    /// # Errors
    /// Those of the file system; that there is none is no error.
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Keep it, durably when this returns.
    ///
    /// # Errors
    /// Those of the file system; the old one is kept then.
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()>;
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The box has an owner, who came first.
    #[error("This box has an owner already. Log in with their passphrase.")]
    Claimed,
    /// The box has no owner.
    #[error("This box has no owner yet.")]
    Unclaimed,
    /// The box does not know whose it is.
    #[error(
        "This box cannot read its state volume, and does not know whose it is. It can be claimed \
         again after a factory reset."
    )]
    Unknown,
    /// The passphrase cannot be one.
    #[error("{0}")]
    Passphrase(&'static str),
    /// It is no code at all.
    #[error("A code has six letters and digits, as the panel shows them.")]
    NoCode,
    /// It is not the code.
    #[error("That is not the code. This address has {0} more tries.")]
    WrongCode(usize),
    /// Too many wrong codes came from there.
    #[error(
        "Too many wrong codes came from this address. Take another computer, or restart the box."
    )]
    Barred,
    /// It is not the code, and there is another one now.
    #[error("That was not the code either. It has changed: see the panel.")]
    Changed,
    /// It is not the passphrase.
    #[error("That is not the passphrase.")]
    WrongPassphrase,
    /// The session's passphrase was given too long ago.
    #[error("You gave your passphrase more than 5 minutes ago. Give it again to do this.")]
    Unproved,
    /// It was not looked at.
    #[error("Too many wrong tries. Wait {0} s.")]
    Wait(u64),
    /// Somebody else's passphrase is being looked at, for too long.
    #[error("The box is busy. Try again.")]
    Busy,
    /// It could not be written down.
    #[error("The box cannot write to its disk.")]
    Disk(#[source] io::Error),
}

/// A session that began.
pub struct Entered {
    /// What its cookie says.
    pub token: String,
}

/// Act on a passphrase that was right, or is new.
type OnPassphrase = Box<dyn Fn(&str) + Send + Sync>;

/// The owner, or the code for whoever becomes it.
pub struct Owner {
    keep: Arc<dyn Keep>,
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
    /// The record of the owner cannot be read: nobody becomes the owner.
    unknown: bool,
    on_passphrase: Option<OnPassphrase>,
}

struct Inner {
    hash: Option<Hash>,
    lock: Lock,
    /// Of the code.
    codes: Guesses,
    sessions: Sessions,
    /// Of the passphrase.
    passphrases: Guesses,
}

impl Owner {
    /// Reads what is kept; a new box gets a code.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn open(keep: Arc<dyn Keep>, clock: Arc<dyn Clock>) -> io::Result<Self> {
        // Where it cannot be read there is an owner, whom nobody can prove to be: no newcomer
        // becomes one by that.
        let unreadable = |error| {
            tracing::error!(%error, file = OWNER, "nobody can log in with the passphrase");
            Hash::of_nothing()
        };
        let hash = keep.load(OWNER)?;
        let hash = hash.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_else(unreadable));
        let kept = keep.load(CLAIM)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let lock = match kept {
            Some(lock) => lock,
            None => {
                let lock = Lock::new(fresh());
                keep.replace(CLAIM, &serde_json::to_vec(&lock)?)?;
                lock
            }
        };
        let (codes, passphrases) = (Guesses::new(claim::LIMITS), Guesses::new(PASSPHRASES));
        let inner = Inner { hash, lock, codes, sessions: Sessions::default(), passphrases };
        let inner = Mutex::new(inner);
        Ok(Self { keep, clock, inner, unknown: false, on_passphrase: None })
    }

    /// The box cannot read whose it is, so nobody owns it and nobody can claim it.
    pub fn out_of_reach(self) -> Self {
        Self { unknown: true, ..self }
    }

    /// Calls `act` with the passphrase at every login, claim and change that succeeds.
    pub fn on_passphrase(self, act: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { on_passphrase: Some(Box::new(act)), ..self }
    }

    fn passphrase_given(&self, passphrase: &str) {
        if let Some(act) = &self.on_passphrase {
            act(passphrase);
        }
    }

    /// True if the box cannot read whose it is.
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The code and how many wrong ones are left; `None` when the box has an owner, or cannot have
    /// one.
    pub fn code(&self) -> Option<(String, u32)> {
        let inner = self.inner();
        (inner.hash.is_none() && !self.unknown).then(|| (inner.lock.code.text(), inner.lock.left()))
    }

    /// Somebody owns the box.
    pub fn claimed(&self) -> bool {
        self.inner().hash.is_some()
    }

    /// The past of an address that wants to come in, or to claim.
    pub fn standing(&self, from: IpAddr) -> Standing {
        let (now, mut inner) = (self.clock.steady(), self.inner());
        match inner.hash {
            Some(_) => inner.passphrases.standing(from, now),
            None => inner.codes.standing(from, now),
        }
    }

    /// Makes whoever knows the code the owner, and begins their session. Blocks: it hashes and
    /// writes to disk.
    ///
    /// # Errors
    /// Why not. Only a wrong code counts as a try, and it is written down before it is answered.
    pub fn claim(&self, code: &str, passphrase: &str, from: IpAddr) -> Result<Entered, Refusal> {
        passphrase::check(passphrase).map_err(Refusal::Passphrase)?;
        let code = Code::typed(code).ok_or(Refusal::NoCode)?;
        // Held to the end: of two who know the code, one is the first.
        let mut inner = self.inner();
        self.attempt(&mut inner, &code, from)?;
        let hash = Hash::of(passphrase, chance()).ok_or(Refusal::Busy)?;
        let bytes = serde_json::to_vec(&hash).map_err(io::Error::from);
        let kept = bytes.and_then(|bytes| self.keep.replace(OWNER, &bytes));
        kept.map_err(Refusal::Disk)?;
        inner.hash = Some(hash);
        self.passphrase_given(passphrase);
        Ok(self.begin(&mut inner))
    }

    /// Whoever knows the code of a box without an owner stands before it. Blocks: it may write to
    /// disk.
    ///
    /// # Errors
    /// As [`Owner::claim`]; the code stays good.
    pub fn prove(&self, code: &str, from: IpAddr) -> Result<(), Refusal> {
        let code = Code::typed(code).ok_or(Refusal::NoCode)?;
        self.attempt(&mut self.inner(), &code, from)
    }

    fn attempt(&self, inner: &mut Inner, code: &Code, from: IpAddr) -> Result<(), Refusal> {
        if self.unknown {
            return Err(Refusal::Unknown);
        }
        if inner.hash.is_some() {
            return Err(Refusal::Claimed);
        }
        let now = self.clock.steady();
        match inner.codes.leave(from, now) {
            Leave::Given => {}
            Leave::Wait(seconds) => return Err(Refusal::Wait(seconds)),
            Leave::Never => return Err(Refusal::Barred),
        }
        let answer = inner.lock.attempt(code, fresh());
        if answer == Answer::Right {
            return Ok(());
        }
        inner.codes.wrong(from, now);
        let bytes = serde_json::to_vec(&inner.lock).map_err(io::Error::from);
        let kept = bytes.and_then(|bytes| self.keep.replace(CLAIM, &bytes));
        kept.map_err(Refusal::Disk)?;
        if answer == Answer::Changed {
            inner.codes.clear();
            return Err(Refusal::Changed);
        }
        Err(Refusal::WrongCode(inner.codes.left(from)))
    }

    /// Begins a session of the owner. Blocks as [`Owner::claim`] does.
    ///
    /// # Errors
    /// Why not.
    pub fn enter(&self, passphrase: &str, from: IpAddr) -> Result<Entered, Refusal> {
        let mut inner = self.verify(passphrase, from)?;
        self.passphrase_given(passphrase);
        Ok(self.begin(&mut inner))
    }

    fn begin(&self, inner: &mut Inner) -> Entered {
        let token = stdx::random_hex(32);
        inner.sessions.begin(&token, stdx::random_hex(16), self.clock.steady());
        Entered { token }
    }

    /// The secret of the forms of the session with this token; `None` without such a session.
    pub fn session(&self, token: &str) -> Option<String> {
        let now = self.clock.steady();
        self.inner().sessions.find(token, now)
    }

    /// Whether there is such a session. Asking does not keep it alive.
    pub fn lives(&self, token: &str) -> bool {
        let now = self.clock.steady();
        self.inner().sessions.lives(token, now)
    }

    /// Ends a session.
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
