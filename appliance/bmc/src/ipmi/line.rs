//! Line to one BMC, shared by all its drivers: lock, session and the cipher suite that worked last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use super::connect::{Live, open};
use super::handshake::Login;
use super::link::{QUICK, SHORT};
use super::message::Command;
use crate::{CipherSuite, Endpoint, Error};

/// Maximum wait for the line; the turn before may last [`TURN_LIMIT`].
const QUEUE_LIMIT: Duration = Duration::from_secs(90);

/// Maximum duration of one turn: finding a cipher suite, opening a session and the commands.
const TURN_LIMIT: Duration = Duration::from_secs(45);

/// Time after which an idle session is closed. A BMC has about four sessions, and drops an idle one
/// after 60 s.
const IDLE_LIMIT: Duration = Duration::from_secs(3);

/// A line to one BMC.
#[derive(Default)]
pub(crate) struct Line {
    state: Mutex<State>,
    closer_runs: AtomicBool,
}

#[derive(Default)]
struct State {
    warm: Option<Warm>,
    suite: Option<CipherSuite>,
}

struct Warm {
    live: Live,
    login: Login,
    used: Instant,
}

impl Line {
    /// Takes exclusive use of the line while `commands` runs.
    pub(super) async fn turn<T>(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        commands: impl AsyncFnOnce(&mut Turn<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let late = |step, after| Error::Timeout { address: endpoint.address.clone(), step, after };
        let login = Login::new(&endpoint.credentials).map_err(|reason| {
            let address = endpoint.address.clone();
            Error::Credentials { address, reason }
        })?;
        let state = timeout(QUEUE_LIMIT, self.state.lock())
            .await
            .map_err(|_| late("the commands before this one", QUEUE_LIMIT))?;
        let mut turn = Turn { endpoint, login, state };
        let done = timeout(TURN_LIMIT, commands(&mut turn))
            .await
            .unwrap_or_else(|_| Err(late("all the commands together", TURN_LIMIT)));
        if turn.state.warm.is_some() && !self.closer_runs.swap(true, Ordering::Relaxed) {
            tokio::spawn(close_when_idle(Closer(Arc::clone(self))));
        }
        done
    }
}

/// Task that closes the idle session of a line; it reports when it is dropped with its runtime.
struct Closer(Arc<Line>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.closer_runs.store(false, Ordering::Relaxed);
    }
}

async fn close_when_idle(closer: Closer) {
    let line = Arc::clone(&closer.0);
    loop {
        // Held while closing: the next session waits until this one's place is free.
        let mut state = line.state.lock().await;
        let wake = match state.warm.take() {
            Some(warm) if warm.used.elapsed() < IDLE_LIMIT => {
                let wake = warm.used + IDLE_LIMIT;
                state.warm = Some(warm);
                wake
            }
            idle => {
                if let Some(warm) = idle {
                    warm.live.close().await;
                }
                // Before the line is let go, or the next turn would count on this task.
                drop(closer);
                return;
            }
        };
        drop(state);
        tokio::time::sleep_until(wake).await;
    }
}

/// Exclusive use of the line.
pub(super) struct Turn<'a> {
    endpoint: &'a Endpoint,
    login: Login,
    state: MutexGuard<'a, State>,
}

impl Turn<'_> {
    /// Ask the BMC for one thing, in the session that is open or in a new one. A warm session that
    /// has died meanwhile is replaced and the command sent once more, if it may be done twice.
    pub(super) async fn call<C: Command>(&mut self, command: &C) -> Result<C::Reply, Error> {
        if let Some(mut warm) = self.warm().await {
            // A session that has been silent for seconds answers quickly or is dead.
            match warm.live.call(command, SHORT).await {
                Err(
                    error @ (Error::Timeout { .. } | Error::Hostile { .. } | Error::Socket { .. }),
                ) if command.may_repeat() => {
                    tracing::debug!(bmc = %self.endpoint.address, %error, "session lost");
                }
                answer => return self.keep(warm, answer),
            }
        }
        let live = self.open().await?;
        let login = self.login.clone();
        let mut warm = Warm { live, login, used: Instant::now() };
        let answer = warm.live.call(command, QUICK).await;
        self.keep(warm, answer)
    }

    /// The session in waiting, taken out so that a call dropped half way leaves none behind.
    async fn warm(&mut self) -> Option<Warm> {
        let warm = self.state.warm.take()?;
        let suits = self.endpoint.cipher_suite.is_none_or(|suite| suite == warm.live.suite());
        if suits && warm.login == self.login {
            return Some(warm);
        }
        warm.live.close().await;
        None
    }

    fn keep<T>(&mut self, mut warm: Warm, answer: Result<T, Error>) -> Result<T, Error> {
        if matches!(answer, Ok(_) | Err(Error::CommandRefused { .. })) {
            warm.used = Instant::now();
            self.state.warm = Some(warm);
        }
        answer
    }

    async fn open(&mut self) -> Result<Live, Error> {
        let Endpoint { address, credentials, cipher_suite } = self.endpoint;
        let known = self.state.suite.take();
        let username = &credentials.username;
        let opened = match open(address, &self.login, username, *cipher_suite, known).await {
            // The BMC no longer accepts the suite that worked last: tries all suites again.
            Err(Error::SuiteRefused { .. }) if known.is_some() && cipher_suite.is_none() => {
                open(address, &self.login, username, None, None).await
            }
            opened => opened,
        };
        self.state.suite = match &opened {
            Ok(live) => Some(live.suite()),
            Err(_) => known,
        };
        opened
    }
}
