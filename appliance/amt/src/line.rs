//! Line to one machine, which all drivers of the machine share: lock, connection, login and pin.
//! AMT gets one request at a time.

mod http;
mod turn;

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use http_digest::Challenge;
use stdx::{Secret, random_hex};
use tls_pin::Trust;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::boot::BootTarget;
use crate::boot::https::{Availability, RootCertificate};
use crate::{Error, Fingerprint};

pub(crate) use self::http::connect;
use self::http::{Connection, PATH};
pub(crate) use turn::Turn;

/// Maximum wait for the line. Each earlier turn may last [`TURN_LIMIT`].
const QUEUE_LIMIT: Duration = Duration::from_secs(90);
/// Maximum time of one turn, with all its requests.
const TURN_LIMIT: Duration = Duration::from_secs(55);
/// Minimum time between two readings of the boot options, which change only in the firmware setup.
const LEARN_INTERVAL: Duration = Duration::from_secs(600);
/// Bytes of a client nonce.
const CNONCE_BYTES: usize = 8;

/// User name and password of an AMT account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// User name; `admin` by default.
    pub username: String,
    /// Password of the account.
    pub password: Secret,
}

/// Protection of the connection. The driver never changes from one to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// HTTP without TLS, which the owner must permit for the machine.
    Plain,
    /// TLS with a certificate that is trusted in this way. [`Trust::FirstUse`] lasts while the
    /// [`Line`] exists.
    Tls(Trust),
}

impl Security {
    /// TCP port without TLS.
    pub const PLAIN_PORT: u16 = 16_992;
    /// TCP port with TLS.
    pub const TLS_PORT: u16 = 16_993;
}

/// Address and login of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or IP address; IPv6 without brackets.
    pub host: String,
    /// TCP port; `None` means the standard port of [`Endpoint::security`].
    pub port: Option<u16>,
    /// Protection of the connection.
    pub security: Security,
    /// User name and password.
    pub login: Login,
    /// Root certificate that the machine must trust for a boot by UEFI HTTPS; `None` leaves those
    /// that it trusts.
    pub boot_root: Option<RootCertificate>,
}

impl Endpoint {
    /// Returns the TCP port of the connection.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.security {
            Security::Plain => Security::PLAIN_PORT,
            Security::Tls(_) => Security::TLS_PORT,
        })
    }

    /// Returns the TCP port of redirection with the same protection, which is 2 higher.
    pub fn redirection_port(&self) -> u16 {
        self.port().wrapping_add(2)
    }
}

/// Line to one machine.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
    /// Availability of UEFI HTTPS boot, and the time of its reading.
    https_boot: StdMutex<Option<(Availability, Instant)>>,
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
    session: Option<Session>,
    /// Number of the last request.
    last_id: u64,
    /// Certificate that was trusted on first use.
    trusted: Option<Fingerprint>,
    /// Header `Server` of the last answer.
    server: Option<String>,
    /// Former state of the redirection service, which a canceled call did not restore.
    pub(crate) redirection: Option<u32>,
    /// Boot device that this driver has set for the next boot.
    pub(crate) boot: Option<BootTarget>,
    /// Exists while a serial console is open.
    pub(crate) console: Weak<()>,
}

/// Login with the nonce of the last challenge.
struct Session {
    challenge: Challenge,
    login: Login,
    count: u32,
}

impl Session {
    fn new(challenge: Challenge, login: Login) -> Self {
        Self { challenge, login, count: 0 }
    }

    fn authorization(&mut self) -> String {
        self.count += 1;
        let login = (self.login.username.as_str(), &self.login.password);
        let cnonce = random_hex(CNONCE_BYTES);
        self.challenge.authorization(login, ("POST", PATH), &cnonce, self.count)
    }
}

impl Line {
    /// Returns the availability of UEFI HTTPS boot; `None` before the first reading.
    pub(crate) fn https_boot(&self) -> Option<Availability> {
        let learned = self.https_boot.lock().unwrap_or_else(PoisonError::into_inner);
        learned.map(|(availability, _)| availability)
    }

    /// Returns true if the last reading of the boot options is recent.
    pub(crate) fn has_learned(&self) -> bool {
        let learned = self.https_boot.lock().unwrap_or_else(PoisonError::into_inner);
        learned.is_some_and(|(_, at)| at.elapsed() < LEARN_INTERVAL)
    }

    /// Stores the availability of UEFI HTTPS boot.
    pub(crate) fn learn_https_boot(&self, availability: Availability) {
        let mut learned = self.https_boot.lock().unwrap_or_else(PoisonError::into_inner);
        *learned = Some((availability, Instant::now()));
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
        timeout(TURN_LIMIT, requests(&mut turn))
            .await
            .unwrap_or_else(|_| Err(late("all the requests together", TURN_LIMIT)))
    }
}
