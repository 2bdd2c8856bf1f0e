//! Line to one BMC, which all drivers of the BMC share: lock, open session, and version and suite
//! of the last session.

pub(crate) mod connect;
mod legacy;
pub(crate) mod link;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use self::connect::{KnownVersion, Live, open};
use self::link::{QUICK, SHORT};
use crate::command::sdr::{SdrInfo, SensorRecord};
use crate::handshake::Login;
use crate::message::Command;
use crate::{Endpoint, Error, Malformed};

/// Maximum wait for the line. Each earlier turn may last [`TURN_LIMIT`].
const QUEUE_LIMIT: Duration = Duration::from_secs(90);

/// Maximum duration of one turn: query of the cipher suites, session setup and commands.
const TURN_LIMIT: Duration = Duration::from_secs(45);

/// Time after which an idle session is closed. A BMC has about four sessions, and drops an idle
/// session after 60 s.
const IDLE_LIMIT: Duration = Duration::from_secs(3);

/// Line to one BMC. All [`crate::Ipmi`] of one BMC share the line.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
    closer_runs: AtomicBool,
    /// True while the last session was one of IPMI 1.5.
    is_legacy: AtomicBool,
}

#[derive(Default)]
struct State {
    warm: Option<Warm>,
    known: KnownVersion,
    sensors: Option<Sensors>,
}

/// Sensors of a BMC, which change rarely and take hundreds of requests to read.
pub(crate) struct Sensors {
    /// State of the repository when it was read.
    pub(crate) info: SdrInfo,
    /// Sensors of the repository.
    pub(crate) records: Arc<[SensorRecord]>,
}

struct Warm {
    live: Live,
    login: Login,
    used: Instant,
}

impl Line {
    /// Returns true if the last session was one of IPMI 1.5; false before the first session.
    pub(crate) fn is_legacy(&self) -> bool {
        self.is_legacy.load(Ordering::Relaxed)
    }

    /// Runs `commands` with exclusive use of the line.
    pub(crate) async fn turn<T>(
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
        let mut turn = Turn { endpoint, login, state, is_legacy: &self.is_legacy };
        let done = timeout(TURN_LIMIT, commands(&mut turn))
            .await
            .unwrap_or_else(|_| Err(late("all the commands together", TURN_LIMIT)));
        if turn.state.warm.is_some() && !self.closer_runs.swap(true, Ordering::Relaxed) {
            tokio::spawn(close_when_idle(Closer(Arc::clone(self))));
        }
        done
    }
}

/// Task that closes the idle session of a line. The drop clears `closer_runs`.
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

/// Exclusive use of the line to a BMC.
pub(crate) struct Turn<'a> {
    endpoint: &'a Endpoint,
    login: Login,
    state: MutexGuard<'a, State>,
    is_legacy: &'a AtomicBool,
}

impl Turn<'_> {
    /// Sends one command in the open session or in a new session. If the open session has died, a
    /// new session replaces it, and the command is sent again if a repetition is harmless.
    pub(crate) async fn call<C: Command>(&mut self, command: &C) -> Result<C::Reply, Error> {
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

    /// Opens another session than that of the commands, for a serial console.
    pub(crate) async fn open_separate(&mut self) -> Result<Live, Error> {
        self.open().await
    }

    /// Returns the sensors that were read last.
    pub(crate) fn sensors(&self) -> Option<&Sensors> {
        self.state.sensors.as_ref()
    }

    /// Stores the sensors for later turns.
    pub(crate) fn keep_sensors(&mut self, sensors: Sensors) {
        self.state.sensors = Some(sensors);
    }

    /// Returns the error of an answer that is not valid.
    pub(crate) fn hostile(&self, step: &'static str, source: Malformed) -> Error {
        Error::Hostile { address: self.endpoint.address.clone(), step, source }
    }

    /// Takes the idle session out of the line, so that a canceled call leaves no session in an
    /// unknown state. A session with another suite or login is closed.
    async fn warm(&mut self) -> Option<Warm> {
        let warm = self.state.warm.take()?;
        let suits = self.endpoint.cipher_suite.is_none_or(|suite| Some(suite) == warm.live.suite());
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
        let (known, username) = (self.state.known, &credentials.username);
        // A canceled call leaves the version, and not the suite.
        self.state.known = known.without_suite();
        let opened = match open(address, &self.login, username, *cipher_suite, known).await {
            // The BMC no longer accepts the suite that worked last: tries all suites again.
            Err(Error::SuiteRefused { .. })
                if matches!(known, KnownVersion::Plus(Some(_))) && cipher_suite.is_none() =>
            {
                open(address, &self.login, username, None, known.without_suite()).await
            }
            opened => opened,
        };
        self.state.known = match opened.as_ref().map(Live::suite) {
            Ok(Some(suite)) => KnownVersion::Plus(Some(suite)),
            Ok(None) => KnownVersion::Legacy,
            Err(_) => known,
        };
        let is_legacy = matches!(self.state.known, KnownVersion::Legacy);
        self.is_legacy.store(is_legacy, Ordering::Relaxed);
        opened
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    bytes
}
