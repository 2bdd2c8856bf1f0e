//! All consoles: starts and ends the recorder of each machine.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use crate::recorder::{Input, Recorder, Viewer};
use crate::ring::Budget;
use crate::{Error, OpenError};

/// Memory of all recordings together, in bytes: 128 full recordings.
const ALL_BYTES: usize = 32 * 1024 * 1024;
/// Maximum number of recorders.
const RECORDERS_MAX: usize = 1024;
/// Interval between two readings of the list of machines.
const REFRESH: Duration = Duration::from_secs(30);

/// Future of a method of [`Machines`]; boxed, so that the trait is object-safe.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time at which a console is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordMode {
    /// Always, so that the output before a crash is in the recording.
    Always,
    /// Only while a viewer is attached.
    OnRequest,
}

/// Machine with a serial console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Name, as a viewer writes it.
    pub name: String,
    /// Time at which the console is recorded.
    pub mode: RecordMode,
}

/// Access to the machines and their management controllers.
pub trait Machines: Send + Sync + 'static {
    /// Returns the machines with a serial console; `None` if they cannot be read at this time.
    fn list(&self) -> Pending<'_, Option<Vec<Recorded>>>;

    /// Opens the serial console of a machine. The stream ends with its session.
    fn open<'a>(&'a self, name: &'a str) -> Pending<'a, Result<DuplexStream, OpenError>>;

    /// Returns the public keys, in OpenSSH form, that may use the console of a machine. Empty for
    /// an unknown machine.
    fn keys<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<String>>;
}

/// Consoles of all machines.
#[derive(Clone)]
pub struct Consoles(Arc<Shared>);

struct Shared {
    machines: Arc<dyn Machines>,
    recorders: Mutex<HashMap<String, (RecordMode, Arc<Recorder>)>>,
    budget: Budget,
}

impl Consoles {
    /// Creates the consoles. No session is opened before [`Consoles::run`].
    pub fn new(machines: Arc<dyn Machines>) -> Self {
        let (recorders, budget) = (Mutex::default(), Budget::new(ALL_BYTES));
        Self(Arc::new(Shared { machines, recorders, budget }))
    }

    /// Starts and ends recorders as the list of machines changes, until `shutdown`.
    pub async fn run(&self, shutdown: CancellationToken) {
        loop {
            self.refresh().await;
            tokio::select! {
                () = tokio::time::sleep(REFRESH) => {}
                () = shutdown.cancelled() => break,
            }
        }
        self.recorders().clear();
    }

    /// Attaches a viewer to the console of a machine.
    ///
    /// # Errors
    /// No machine with a serial console has the name.
    pub async fn attach(&self, name: &str) -> Result<Viewer, Error> {
        Ok(Recorder::attach(&self.recorder(name).await?))
    }

    /// Returns the recorded text of a machine.
    ///
    /// # Errors
    /// No machine with a serial console has the name.
    pub async fn recorded(&self, name: &str) -> Result<Vec<u8>, Error> {
        Ok(self.recorder(name).await?.recorded())
    }

    /// Returns the way of typed characters to a machine.
    ///
    /// # Errors
    /// No machine with a serial console has the name.
    pub async fn input(&self, name: &str) -> Result<Input, Error> {
        Ok(self.recorder(name).await?.input())
    }

    /// Returns the public keys that may use the console of a machine.
    pub(crate) async fn keys(&self, name: &str) -> Vec<String> {
        self.0.machines.keys(name).await
    }

    async fn recorder(&self, name: &str) -> Result<Arc<Recorder>, Error> {
        let find = || self.recorders().get(name).map(|(_, recorder)| Arc::clone(recorder));
        if let Some(found) = find() {
            return Ok(found);
        }
        // A machine that was added after the last reading.
        self.refresh().await;
        find().ok_or_else(|| Error::Unknown { name: name.to_owned() })
    }

    async fn refresh(&self) {
        // Without a list, no recording may be lost.
        let Some(list) = self.0.machines.list().await else { return };
        let mut recorders = self.recorders();
        recorders.retain(|name, (mode, _)| {
            list.iter().any(|machine| machine.name == *name && machine.mode == *mode)
        });
        for Recorded { name, mode } in list {
            if recorders.len() == RECORDERS_MAX {
                tracing::warn!(limit = RECORDERS_MAX, "not all serial consoles are recorded");
                break;
            }
            recorders.entry(name.clone()).or_insert_with(|| {
                let machines = Arc::clone(&self.0.machines);
                (mode, Recorder::start(name, mode, machines, self.0.budget.clone()))
            });
        }
    }

    fn recorders(&self) -> MutexGuard<'_, HashMap<String, (RecordMode, Arc<Recorder>)>> {
        self.0.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
