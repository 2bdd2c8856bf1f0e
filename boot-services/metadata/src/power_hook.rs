//! Power hooks: a service in an installed system polls the box, and powers its machine off when the
//! box requests it. Each message has an HMAC with a key that only the box and the machine have.
//!
//! A request is for the boot of the last poll, exists only while the caller waits, and is offered
//! to polls of this boot only. So a machine that starts again is not powered off by an old request.

mod protocol;
mod script;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub(crate) use protocol::{Down, HookKey, Poll};
pub(crate) use script::{base_url, install_script};

/// Maximum time from a request to the confirmation by the hook, which polls every 10 s.
const CONFIRM_LIMIT: Duration = Duration::from_secs(45);
/// Maximum age of the last poll of a hook that can get a request.
const FRESH: Duration = Duration::from_secs(30);
/// Maximum number of machines whose last poll is remembered. A further machine replaces the one
/// with the oldest poll.
const HOOKS_MAX: usize = 4096;
/// Length of the random ID of a request, in bytes.
const REQUEST_BYTES: usize = 16;

/// Reason why a power hook did not confirm a request to power off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PowerOffError {
    /// The installed system has no hook, or the machine is off.
    #[error("no power hook of the machine has polled within 30 s; install it in its system")]
    NoHook,
    /// An earlier request to the same machine still waits.
    #[error("another request to power off waits for the power hook of the machine")]
    Busy,
    /// The hook stopped to poll, or the machine has started again since the request.
    #[error("the power hook of the machine did not confirm the request within 45 s")]
    NotConfirmed,
}

/// Last poll of the power hook of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookState {
    /// Time since the last poll.
    pub age: Duration,
    /// True if a NIC of the machine may wake it, as its system reports; `None` if not reported.
    pub is_armed: Option<bool>,
}

/// Last polls of power hooks, and the requests to power off that wait for a poll.
pub struct PowerHooks {
    key: HookKey,
    hooks: Mutex<HashMap<String, Hook>>,
}

/// Hook of one machine.
#[derive(Debug)]
struct Hook {
    /// Boot ID of the system (`/proc/sys/kernel/random/boot_id`).
    boot: String,
    /// Number of the last message of this boot. A message with a lower number is a repetition.
    number: u64,
    last: Instant,
    is_armed: Option<bool>,
    request: Option<Request>,
}

#[derive(Debug)]
struct Request {
    id: String,
    /// Sender of the confirmation; `None` after the confirmation.
    confirmed: Option<oneshot::Sender<()>>,
}

impl PowerHooks {
    /// Creates the state of a box that starts now. The keys of the machines are derived from
    /// `secret`, which stays the same after a restart.
    pub fn new(secret: &[u8]) -> Self {
        Self { key: HookKey::new(secret), hooks: Mutex::default() }
    }

    /// Returns the last poll of the hook of `hardware` (`namespace/name`); `None` without a poll
    /// since the start of the box.
    pub fn state(&self, hardware: &str) -> Option<HookState> {
        let hooks = self.hooks();
        let hook = hooks.get(hardware)?;
        Some(HookState { age: hook.last.elapsed(), is_armed: hook.is_armed })
    }

    /// Requests that `hardware` (`namespace/name`) powers off, and waits until its hook confirms.
    /// The request ends with this future.
    ///
    /// # Errors
    /// No hook polls, another request waits, or no confirmation arrives within 45 s.
    pub async fn power_off(&self, hardware: &str) -> Result<(), PowerOffError> {
        let (waiting, confirmed) = self.publish(hardware, Instant::now())?;
        let confirmed = tokio::time::timeout(CONFIRM_LIMIT, confirmed).await;
        drop(waiting);
        confirmed.ok().and_then(Result::ok).ok_or(PowerOffError::NotConfirmed)
    }

    fn hooks(&self) -> MutexGuard<'_, HashMap<String, Hook>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key of the machine whose Hardware has this UID.
    pub(crate) fn key_of(&self, uid: &str) -> HookKey {
        self.key.of_machine(uid)
    }

    fn publish(
        &self,
        hardware: &str,
        now: Instant,
    ) -> Result<(WaitingRequest<'_>, oneshot::Receiver<()>), PowerOffError> {
        let mut hooks = self.hooks();
        let hook = hooks.get_mut(hardware).filter(|hook| now.duration_since(hook.last) <= FRESH);
        let hook = hook.ok_or(PowerOffError::NoHook)?;
        if hook.request.is_some() {
            return Err(PowerOffError::Busy);
        }
        let (id, (sender, receiver)) = (stdx::random_hex(REQUEST_BYTES), oneshot::channel());
        hook.request = Some(Request { id: id.clone(), confirmed: Some(sender) });
        Ok((WaitingRequest { hooks: self, hardware: hardware.to_owned(), id }, receiver))
    }

    /// Records an authentic poll. Returns the ID of the request that waits for this boot, if any.
    ///
    /// # Errors
    /// The poll is a repetition of an earlier one.
    pub(crate) fn polled(
        &self,
        hardware: &str,
        poll: &Poll,
        now: Instant,
    ) -> Result<Option<String>, Repetition> {
        let mut hooks = self.hooks();
        let request = match hooks.get_mut(hardware) {
            Some(hook) if hook.boot == poll.boot => {
                hook.advance(poll.number)?;
                (hook.last, hook.is_armed) = (now, poll.is_armed());
                hook.request.as_ref().filter(|it| it.confirmed.is_some())
            }
            _ => {
                // A request for the boot before ends without a confirmation.
                let (boot, number) = (poll.boot.clone(), poll.number);
                let is_armed = poll.is_armed();
                let hook = Hook { boot, number, last: now, is_armed, request: None };
                hooks.insert(hardware.to_owned(), hook);
                None
            }
        };
        let request = request.map(|it| it.id.clone());
        if hooks.len() > HOOKS_MAX {
            let eldest = hooks.iter().min_by_key(|(_, hook)| hook.last);
            if let Some(eldest) = eldest.map(|(hardware, _)| hardware.clone()) {
                hooks.remove(&eldest);
            }
        }
        Ok(request)
    }

    /// Records an authentic confirmation. Returns true if the request waits, so that the machine
    /// must power off.
    ///
    /// # Errors
    /// The message is a repetition of an earlier one.
    pub(crate) fn confirmed(&self, hardware: &str, down: &Down) -> Result<bool, Repetition> {
        let mut hooks = self.hooks();
        let hook = hooks.get_mut(hardware).filter(|hook| hook.boot == down.boot);
        let Some(hook) = hook else { return Ok(false) };
        hook.advance(down.number)?;
        let request = hook.request.as_mut().filter(|it| it.id == down.request);
        let confirmed = request.and_then(|it| it.confirmed.take());
        Ok(confirmed.is_some_and(|confirmed| confirmed.send(()).is_ok()))
    }
}

impl Hook {
    fn advance(&mut self, number: u64) -> Result<(), Repetition> {
        if number <= self.number {
            return Err(Repetition);
        }
        self.number = number;
        Ok(())
    }
}

/// Message with a number that the box has received before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Repetition;

/// Published request, which ends when dropped.
struct WaitingRequest<'a> {
    hooks: &'a PowerHooks,
    hardware: String,
    id: String,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if let Some(hook) = self.hooks.hooks().get_mut(&self.hardware) {
            hook.request.take_if(|request| request.id == self.id);
        }
    }
}

#[cfg(test)]
mod tests;
