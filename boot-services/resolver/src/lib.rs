//! Resolves host names to addresses through the operating system's resolver.
//!
//! `getaddrinfo` blocks while a name server does not answer, up to 30 s. Here it runs on at most
//! [`THREADS_MAX`] dedicated threads, so that no other task waits for a name server. All callers
//! share one look-up of a name. A result is used for [`FRESH`] without a new look-up, and for
//! [`STALE`] while new look-ups fail: a machine whose BMC has a name stays reachable while the name
//! server is down. A failure is repeated for [`FAILED`] without a new look-up.
//!
//! Never: sends DNS messages itself, or acts as a name server.
//!
//! Enter at [`system`], and for HTTP clients of hyper at [`ConnectorNames`].

mod connector_names;
mod names;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::time::{Instant, timeout};

pub use self::connector_names::ConnectorNames;
use self::names::{Names, Next};

/// Maximum number of concurrent look-ups.
const THREADS_MAX: usize = 4;
/// Maximum time that a caller waits for a look-up.
const WAIT: Duration = Duration::from_secs(5);
/// Time for which a result is used without a new look-up.
const FRESH: Duration = Duration::from_secs(60);
/// Time for which a result is used while no newer one is available.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// Time for which a failure is repeated without a new look-up.
const FAILED: Duration = Duration::from_secs(15);
/// Maximum remembered names; more than the machines that a box serves.
const NAMES_MAX: usize = 16_384;

type Lookup = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

static SYSTEM: LazyLock<Resolver> =
    LazyLock::new(|| Resolver::new(|host| (host, 0).to_socket_addrs().map(Iterator::collect)));

/// Returns the resolver of the whole process, which uses the operating system's.
pub fn system() -> Resolver {
    SYSTEM.clone()
}

/// Resolver of host names; clones share their results.
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

struct Inner {
    lookup: Box<Lookup>,
    names: Mutex<Names>,
}

impl Resolver {
    /// Creates a resolver that calls `lookup`, which may block.
    fn new(lookup: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { lookup: Box::new(lookup), names: Mutex::default() }))
    }

    /// Returns the addresses of a host in order of preference, with `port`. An IP address as `host`
    /// is returned without a look-up.
    ///
    /// # Errors
    /// The operating system reports an error, too many names are being looked up, or no result came
    /// within [`WAIT`] ([`io::ErrorKind::TimedOut`]).
    pub async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let mut found = self.find(host).await?;
        found.iter_mut().for_each(|address| address.set_port(port));
        Ok(found)
    }

    async fn find(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        let next = self.names().request(host, Instant::now());
        let answer = match next {
            Next::Known(answer) => return answer,
            Next::Full => return Err(io::Error::other("too many names are being looked up")),
            Next::Wait { answer, is_new_thread } => {
                if is_new_thread {
                    self.start();
                }
                answer
            }
        };
        match timeout(WAIT, answer).await {
            Ok(Ok(Ok(found))) => Ok(found),
            Ok(Ok(Err(failure))) => self.names().stale(host, Instant::now()).ok_or(failure.into()),
            Ok(Err(_)) | Err(_) => self.names().stale(host, Instant::now()).ok_or_else(|| {
                let why =
                    format!("no name server responded for {host} within {} s", WAIT.as_secs());
                io::Error::new(io::ErrorKind::TimedOut, why)
            }),
        }
    }

    /// Starts a thread that performs look-ups until no name waits.
    fn start(&self) {
        let resolver = self.clone();
        let work = move || {
            loop {
                let Some(host) = resolver.names().take() else { return };
                let found = (resolver.0.lookup)(&host);
                resolver.names().end(&host, found);
            }
        };
        if thread::Builder::new().name("resolver".to_owned()).spawn(work).is_err() {
            self.names().has_no_thread();
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
