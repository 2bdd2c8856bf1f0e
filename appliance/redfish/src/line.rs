//! Line to one BMC, which all drivers of the BMC share: lock, connection, login, and what was
//! learned about the service. A BMC gets one request at a time.

mod connection;
mod login;
mod turn;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard as StdGuard, PoisonError};
use std::time::Duration;

use stdx::Secret;
use tls_pin::{Fingerprint, Trust};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{Document, Error, Quirks};

use connection::Connection;
use login::Auth;
pub(crate) use turn::Turn;

/// Maximum wait for the line. Each earlier turn may last [`TURN_LIMIT`].
const QUEUE_LIMIT: Duration = Duration::from_secs(120);
/// Maximum time of one turn, with all its requests.
const TURN_LIMIT: Duration = Duration::from_secs(90);
/// Time after which an unused session is deleted; longer than the interval of usual readings.
const SESSION_IDLE: Duration = Duration::from_secs(300);
/// Maximum systems of one BMC that are remembered.
const SYSTEMS_MAX: usize = 64;

/// User name and password of an account of the BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// User name, without a colon.
    pub username: String,
    /// Password of the account.
    pub password: Secret,
    /// True to send both with each request (HTTP Basic) instead of a session's token.
    pub is_basic: bool,
}

/// Protection of the connection. The driver never changes from one to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// HTTP without TLS, which the owner must permit for the machine.
    Plain,
    /// TLS with a certificate that is trusted in this way.
    Tls(Trust),
}

impl Security {
    /// TCP port without TLS.
    pub const PLAIN_PORT: u16 = 80;
    /// TCP port with TLS.
    pub const TLS_PORT: u16 = 443;
}

/// Address and login of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or IP address; IPv6 without brackets.
    pub host: String,
    /// TCP port of the service.
    pub port: u16,
    /// Protection of the connection.
    pub security: Security,
    /// User name and password.
    pub login: Login,
    /// Identifier or name of the system; empty for the only physical one.
    pub system: String,
}

/// Line to one BMC.
pub struct Line {
    state: Mutex<State>,
    /// Functions that the service offers, by name of the system.
    learned: StdMutex<HashMap<String, crate::Learned>>,
    session_idle: Duration,
}

impl Default for Line {
    fn default() -> Self {
        Self::with_session_idle(SESSION_IDLE)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

/// Connection and memory of a line.
#[derive(Default)]
pub(crate) struct State {
    connection: Option<Connection>,
    auth: Option<Auth>,
    /// Certificate that was trusted on first use.
    trusted: Option<Fingerprint>,
    /// True while a task waits to delete the idle session.
    is_reaped: bool,
    /// End of the last turn.
    used: Option<Instant>,
    /// Root resource of the service.
    root: Option<Document>,
    /// Differences of the vendor.
    pub(crate) quirks: Quirks,
    /// Paths of the resources of each system, by its name in the options.
    pub(crate) places: HashMap<String, Places>,
}

/// Paths of the resources of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// Path of the system.
    pub system: String,
    /// Path of the BMC's own resource.
    pub manager: Option<String>,
    /// Path of the chassis.
    pub chassis: Option<String>,
}

impl State {
    /// Stores the paths of a system.
    pub(crate) fn remember(&mut self, name: &str, places: Places) {
        if self.places.len() >= SYSTEMS_MAX {
            self.places.clear();
        }
        self.places.insert(name.to_owned(), places);
    }

    /// Removes what was learned about the service, for example after an update of its firmware.
    pub(crate) fn forget(&mut self) {
        self.root = None;
        self.places.clear();
    }
}

impl Line {
    /// Creates a line whose session is deleted after this time without a request.
    pub fn with_session_idle(session_idle: Duration) -> Self {
        Self { state: Mutex::default(), learned: StdMutex::default(), session_idle }
    }

    /// Returns what the last contact has shown about a system; `None` before the first contact.
    pub(crate) fn learned(&self, system: &str) -> Option<crate::Learned> {
        self.memory().get(system).cloned()
    }

    pub(crate) fn learn(&self, system: &str, learned: crate::Learned) {
        let mut memory = self.memory();
        if memory.len() >= SYSTEMS_MAX {
            memory.clear();
        }
        memory.insert(system.to_owned(), learned);
    }

    fn memory(&self) -> StdGuard<'_, HashMap<String, crate::Learned>> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `requests` with exclusive use of the line.
    pub(crate) async fn turn<T>(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        requests: impl AsyncFnOnce(&mut Turn<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let late = |step: &str, after| Error::Timeout { step: step.to_owned(), after };
        let state = timeout(QUEUE_LIMIT, self.state.lock())
            .await
            .map_err(|_| late("the requests before this one", QUEUE_LIMIT))?;
        let mut turn = Turn::new(endpoint, state);
        turn.end_other_session().await;
        let done = timeout(TURN_LIMIT, requests(&mut turn))
            .await
            .unwrap_or_else(|_| Err(late("all the requests together", TURN_LIMIT)));
        turn.state.used = Some(Instant::now());
        if turn.has_session() && !turn.state.is_reaped {
            turn.state.is_reaped = true;
            tokio::spawn(reap(Arc::clone(self), endpoint.clone()));
        }
        done
    }
}

/// Deletes the session of a line as soon as the line is idle: sessions of a BMC are few.
async fn reap(line: Arc<Line>, endpoint: Endpoint) {
    loop {
        let until = {
            let state = line.state.lock().await;
            state.used.map_or_else(Instant::now, |used| used + line.session_idle)
        };
        sleep_until(until).await;
        let state = line.state.lock().await;
        if state.used.is_none_or(|used| used.elapsed() >= line.session_idle) {
            let mut turn = Turn::new(&endpoint, state);
            turn.state.is_reaped = false;
            turn.end_session().await;
            turn.state.connection = None;
            return;
        }
    }
}
