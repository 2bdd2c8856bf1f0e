//! The artifact cache: files of other servers, fetched once, checked, and kept under their SHA-256.
//!
//! ```text
//! ROOT/blobs/sha256/<hex>    a whole file; its modification time is when it was last wanted
//! ROOT/origins/<hex>         "sha256:<hex> <url>", named by the URL's SHA-256
//! ROOT/partial/<hex>         what has arrived of a file; <hex>.tag beside it has its entity tag
//! ```
//!
//! A download that breaks off goes on where it stopped, also after a restart. Whoever wants a file
//! that is being fetched joins that download, and may read what has arrived. When there is no room,
//! parts that no download goes on with go first, then files that are neither in use nor needed nor
//! pinned, longest unwanted first ([`room`]). All of ROOT may be lost at any time: it only costs
//! fetching again.
//!
//! Never: answers a client (netboot's HTTP does), decides what is fetched or who may read it
//! ([`Readers`] does).
//!
//! Enter at [`Cache::open`] and [`Cache::fetch`]; [`registry::Mirror`] for images of containers.

mod access;
mod arrival;
mod checksum;
mod download;
mod error;
mod keep;
mod origin;
mod pace;
pub mod registry;
pub mod room;
mod shelf;
mod turns;
mod wanted;
mod zeros;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

pub use access::{CacheAccess, Readers};
pub use arrival::{Arrival, Begun, Download, Progress};
pub use checksum::{Checksum, InvalidChecksum};
pub use error::Error;
pub use keep::Kept;
pub use oci_reference::Digest;
pub use origin::{HttpOrigin, Origin, Part, Refusal, RefusedAddress};
pub(crate) use wanted::read_path;
pub use wanted::{Wanted, shown};

use arrival::State;
use shelf::Shelf;
use turns::Turns;

/// Downloads at once and in waiting; further ones are refused.
const MAX_WAITING: usize = 256;
/// A file that did not come is not asked for again so soon.
const REST: Duration = Duration::from_secs(10);
/// Files of which it is remembered why they did not come.
const MAX_FAILED: usize = 256;

/// A whole file. As long as one of these lives, the file stays.
#[derive(Debug, Clone)]
pub struct Blob {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub digest: Digest,
    /// Bytes.
    pub size: u64,
    _lease: Arc<()>,
}

/// The cache. Cheap to clone.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    shelf: Shelf,
    origin: Arc<dyn Origin>,
    /// Percent of the partition.
    budget: u64,
    turns: Turns,
    /// Held while room is made.
    admission: Mutex<()>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    running: HashMap<String, (Wanted, Download)>,
    failed: HashMap<String, Failure>,
    leases: HashMap<Digest, Arc<()>>,
    /// By key, with how often each is offered.
    offered: HashMap<String, (Wanted, usize)>,
    pinned: BTreeSet<Digest>,
    /// Room that was made for what is still to come.
    reserved: u64,
    /// The owner knows that the partition fills up.
    noticed: bool,
}

struct Failure {
    at: Instant,
    error: Arc<Error>,
}

impl Cache {
    /// The cache in the folder `root`, made if it is not there; files go for new ones when more
    /// than [`room::BUDGET_PERCENT`] of its partition would be taken.
    ///
    /// # Errors
    /// [`Error::Artifact`].
    pub fn open(root: impl Into<PathBuf>, origin: Arc<dyn Origin>) -> Result<Self, Error> {
        Self::with_budget(root, origin, room::BUDGET_PERCENT)
    }

    /// The same with another budget, in percent of the partition.
    ///
    /// # Errors
    /// [`Error::Artifact`].
    pub fn with_budget(
        root: impl Into<PathBuf>,
        origin: Arc<dyn Origin>,
        budget: u64,
    ) -> Result<Self, Error> {
        let (turns, shelf) = (Turns::new(), Shelf::open(root.into())?);
        let (admission, table) = (Mutex::default(), Mutex::default());
        Ok(Self(Arc::new(Inner { shelf, origin, budget, turns, admission, table })))
    }

    /// Starts fetching the file, or joins those who wait for it. It goes on without them. One that
    /// just did not come is not asked for again so soon: the answer is the same.
    pub async fn fetch(&self, wanted: &Wanted) -> Download {
        let (cache, file) = (self.clone(), wanted.clone());
        let started = blocking(move || cache.blocking_fetch(&file)).await;
        started.unwrap_or_else(|error| Download::over(Err(Arc::new(error))))
    }

    /// The same where reading files harms nobody: it may block. Needs a Tokio runtime.
    pub fn blocking_fetch(&self, wanted: &Wanted) -> Download {
        if let Some(blob) = self.held(wanted) {
            return Download::over(Ok(blob));
        }
        let key = wanted.key();
        let mut table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, running)) = table.running.get(&key) {
            return running.clone();
        }
        if let Some(failure) = table.failed.get(&key)
            && failure.at.elapsed() < REST
        {
            return Download::over(Err(Arc::clone(&failure.error)));
        }
        if table.running.len() >= MAX_WAITING {
            let reason = format!("{MAX_WAITING} others are being fetched");
            return Download::over(Err(Arc::new(wanted.failed(reason, true))));
        }
        let (tell, state) = watch::channel(State::default());
        let download = Download::new(state, self.0.shelf.partial(&key).0);
        table.failed.remove(&key);
        table.running.insert(key.clone(), (wanted.clone(), download.clone()));
        drop(table);
        let (cache, wanted) = (self.clone(), wanted.clone());
        tokio::spawn(async move {
            let result = download::run(&cache, &wanted, &tell).await.map_err(Arc::new);
            if let Err(error) = &result {
                tracing::warn!(url = wanted.shown(), error = %stdx::chain(error), "not fetched");
            }
            cache.table(|table| table.end(key, &result));
            tell.send_modify(|state| state.end(result));
        });
        download
    }

    /// The file, if it is here already. Reads files: it may block.
    pub fn held(&self, wanted: &Wanted) -> Option<Blob> {
        let digest = self.0.shelf.digest(wanted)?;
        let size = self.0.shelf.touch(digest)?;
        Some(self.lease(digest, size))
    }

    /// Why the file did not come when it was last fetched; `None` while it is, or when it came.
    pub fn failure(&self, wanted: &Wanted) -> Option<Arc<Error>> {
        self.table(|table| table.failed.get(&wanted.key()).map(|it| Arc::clone(&it.error)))
    }

    /// What is being fetched or waits for its turn.
    pub fn downloads(&self) -> Vec<(Wanted, Progress)> {
        let running =
            |(wanted, download): &(Wanted, Download)| (wanted.clone(), download.progress());
        self.table(|table| table.running.values().map(running).collect())
    }

    fn lease(&self, digest: Digest, size: u64) -> Blob {
        let lease = self.table(|table| Arc::clone(table.leases.entry(digest).or_default()));
        Blob { path: self.0.shelf.blob(digest), digest, size, _lease: lease }
    }

    fn table<T>(&self, with: impl FnOnce(&mut Table) -> T) -> T {
        with(&mut self.0.table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs what reads or writes files where waiting for the disk harms nobody. The error is the
/// runtime's, which shuts down.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => Ok(done),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => Err(arrival::shutdown()),
    }
}

impl Table {
    fn end(&mut self, key: String, result: &Result<Blob, Arc<Error>>) {
        self.running.remove(&key);
        let Err(error) = result else {
            self.failed.remove(&key);
            return;
        };
        if self.failed.len() >= MAX_FAILED {
            self.failed.retain(|_, failure| failure.at.elapsed() < REST);
        }
        if self.failed.len() < MAX_FAILED {
            let failure = Failure { at: Instant::now(), error: Arc::clone(error) };
            self.failed.insert(key, failure);
        }
    }
}

impl Wanted {
    fn failed(&self, reason: String, passing: bool) -> Error {
        Error::Fetch { url: self.shown(), reason, passing }
    }
}

#[cfg(test)]
mod tests;
