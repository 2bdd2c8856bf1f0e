//! Requests to one switch, and what their errors mean.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_snmp::v3::ReportStatus;
use async_snmp::{
    Auth, Client, EngineCache, Error as SnmpError, ErrorStatus, Oid, ResponseShapePolicy, Retry,
    TargetClientBuilder, UdpHandle, Value, VarBind, WalkOptions,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::{Error, Login, LoginRefusal, Refusal, Silence};

/// Wait for the response to one transmission. Small switches take more than a second for a port.
const TRANSMISSION: Duration = Duration::from_millis(2500);
/// Transmissions after the first one, each after [`TRANSMISSION`]. All requests of the crate may be
/// executed twice: a port is set to a value, not toggled.
const REPEATS: u32 = 2;
/// Maximum number of ports of a switch that an error lists.
const PORTS_MAX: usize = 1024;

/// `sysUpTime` (RFC 3418), an object that every switch has.
const UPTIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];

/// Open connection to a switch, which all machines at the switch share. The engine of the switch is
/// discovered once for a connection (RFC 3414 section 4).
#[derive(Default)]
pub struct Line {
    /// Last connection; another login or address opens a new one.
    client: Mutex<Option<Connection>>,
}

#[derive(Clone)]
struct Connection {
    login: Login,
    address: SocketAddr,
    client: Client<UdpHandle>,
    /// Engine of the switch, once discovered.
    engine: Arc<EngineCache>,
    /// True after the switch accepted the user.
    is_accepted: Arc<AtomicBool>,
}

impl Connection {
    fn is_accepted(&self) -> bool {
        self.is_accepted.load(Ordering::Relaxed)
    }

    /// Checks the user with a reading of [`UPTIME`]. Reports about a user are not authenticated
    /// (RFC 3414 section 3.2), and the connection ignores what is not: a forged report could choose
    /// the time in a request, to be replayed later. A reading is harmless when replayed.
    async fn check_user(&self) -> async_snmp::Result<()> {
        if self.is_accepted() || self.login.user().is_none() {
            return Ok(());
        }
        let auth =
            self.login.auth().map_err(|error| SnmpError::Config(error.to_string().into()))?;
        let client = builder(self.address, auth, &self.engine);
        let client = client.allow_unauthenticated_v3_time_correction(true).connect().await?;
        match client.get(&Oid::from_slice(&UPTIME)).await {
            // A user without the right to read the object is a known user.
            Err(error) if !matches!(error.exchange_source(), SnmpError::Snmp { .. }) => Err(error),
            _ => {
                self.is_accepted.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    fn silence(&self) -> Silence {
        match self.login {
            Login::Community(_) => Silence::Community,
            Login::User(_) if self.engine.get(&self.address).is_some() => Silence::Encrypted,
            Login::User(_) => Silence::Discovery,
        }
    }
}

fn builder(address: SocketAddr, auth: Auth, engine: &Arc<EngineCache>) -> TargetClientBuilder {
    Client::builder(address, auth)
        .request_timeout(TRANSMISSION)
        .retry(Retry::fixed(REPEATS, Duration::ZERO).unwrap_or(Retry::none()))
        .response_shape_policy(ResponseShapePolicy::Strict)
        .strict_source(true)
        .engine_cache(Arc::clone(engine))
}

/// Requests to one switch with one login.
pub(crate) struct Requests<'a> {
    pub line: &'a Line,
    pub host: &'a str,
    pub port: u16,
    pub login: &'a Login,
}

impl Requests<'_> {
    /// Reads the objects. An object that the switch does not have is an exception value.
    pub async fn get(&self, objects: &[Oid], what: &str) -> Result<Vec<VarBind>, Error> {
        let response = self.send(what, |client| async move { client.get_many(objects).await });
        Ok(response.await?.varbinds)
    }

    /// Sets one object. `Ok` means that the switch accepted the value.
    pub async fn set(&self, object: &Oid, value: &Value, what: &str) -> Result<(), Error> {
        let value = || value.clone();
        let response = self.send(what, |client| async move { client.set(object, value()).await });
        response.await.map(drop)
    }

    /// Reads the names of the instances below `column`, at most [`PORTS_MAX`].
    pub async fn instances(&self, column: &Oid, what: &str) -> Result<Vec<Oid>, Error> {
        let options = WalkOptions { result_limit: Some(PORTS_MAX), ..WalkOptions::default() };
        self.send(what, |client| async move {
            let mut walk = client.walk_with(column.clone(), options)?;
            let mut found = Vec::new();
            while found.len() < PORTS_MAX
                && let Some(instance) = walk.next().await
            {
                found.push(instance?.oid);
            }
            Ok(found)
        })
        .await
    }

    /// Sends a request, and for a user again in a new connection if a known switch does not
    /// respond: a switch that was replaced or reset has a new engine ID, and the library does not
    /// take the report of another engine for a response.
    async fn send<T, F>(
        &self,
        what: &str,
        request: impl Fn(Client<UdpHandle>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = async_snmp::Result<T>>,
    {
        let started = Instant::now();
        let attempt = |connection: Connection| async {
            connection.check_user().await?;
            request(connection.client).await
        };
        let mut connection = self.open().await?;
        let was_accepted = connection.is_accepted();
        let mut result = attempt(connection.clone()).await;
        if let Err(error) = &result
            && was_accepted
            && is_other_engine(error)
        {
            self.close().await;
            connection = self.open().await?;
            result = attempt(connection.clone()).await;
        }
        match result {
            Ok(response) => Ok(response),
            Err(error) => {
                let silence =
                    Error::NoAnswer { after: started.elapsed(), silence: connection.silence() };
                let error = explain(*error, silence, what);
                if error.is_silence() {
                    // The next request looks up the address and the engine again.
                    self.close().await;
                }
                Err(error)
            }
        }
    }

    async fn open(&self) -> Result<Connection, Error> {
        let found = resolver::system().lookup(self.host, self.port).await;
        let found = found.map_err(Error::Resolve)?;
        let none = || Error::Resolve(std::io::ErrorKind::NotFound.into());
        let address = *found.first().ok_or_else(none)?;
        let mut shared = self.line.client.lock().await;
        if let Some(open) = &*shared
            && open.address == address
            && open.login == *self.login
        {
            return Ok(open.clone());
        }
        let engine = Arc::new(EngineCache::new());
        let client = builder(address, self.login.auth()?, &engine).connect().await;
        let connection = Connection {
            login: self.login.clone(),
            address,
            client: client.map_err(Error::Snmp)?,
            engine,
            is_accepted: Arc::default(),
        };
        Ok(shared.insert(connection).clone())
    }

    async fn close(&self) {
        *self.line.client.lock().await = None;
    }
}

/// Returns the error of a request; `silence` is the one of a request without a response.
fn explain(error: SnmpError, silence: Error, what: &str) -> Error {
    match error.exchange_source() {
        SnmpError::Timeout { .. } => silence,
        SnmpError::Report { status, .. } => match login_refusal(status) {
            Some(refusal) => Error::Login(refusal),
            None => Error::Snmp(Box::new(error)),
        },
        SnmpError::Snmp { status, .. } => {
            Error::Refused { what: what.to_owned(), refusal: refusal(*status) }
        }
        _ => Error::Snmp(Box::new(error)),
    }
}

/// Returns true if another engine may have received the request.
fn is_other_engine(error: &SnmpError) -> bool {
    match error.exchange_source() {
        SnmpError::Timeout { .. } => true,
        SnmpError::Report { status, .. } => matches!(
            **status,
            ReportStatus::UnknownEngineId { .. } | ReportStatus::NotInTimeWindow { .. }
        ),
        _ => false,
    }
}

fn login_refusal(status: &ReportStatus) -> Option<LoginRefusal> {
    Some(match status {
        ReportStatus::UnknownUserName { .. } => LoginRefusal::User,
        ReportStatus::WrongDigest { .. } => LoginRefusal::Password,
        ReportStatus::DecryptionError { .. } => LoginRefusal::PrivacyPassword,
        ReportStatus::UnsupportedSecurityLevel { .. } => LoginRefusal::Level,
        _ => return None,
    })
}

fn refusal(status: ErrorStatus) -> Refusal {
    match status {
        ErrorStatus::NoAccess
        | ErrorStatus::NotWritable
        | ErrorStatus::AuthorizationError
        | ErrorStatus::ReadOnly => Refusal::Access(status),
        ErrorStatus::GenErr
        | ErrorStatus::ResourceUnavailable
        | ErrorStatus::CommitFailed
        | ErrorStatus::UndoFailed => Refusal::Failed(status),
        status => Refusal::Other(status),
    }
}
