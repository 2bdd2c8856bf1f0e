//! Artifact cache: downloads files of other servers once, checks them, and stores them under their
//! SHA-256.
//!
//! ```text
//! ROOT/blobs/sha256/<hex>    a complete file; its modification time is the time of its last use
//! ROOT/origins/<hex>         "sha256:<hex> <url>", named by the URL's SHA-256
//! ROOT/partial/<hex>         bytes that have arrived; <hex>.tag beside it has the entity tag
//! ```
//!
//! An interrupted download resumes at its last byte, also after a restart. A further request for
//! the same file joins the running download, and may read the bytes that have arrived. When space
//! is needed, parts without a running download are evicted first. Then files follow that are not in
//! use, not needed and not pinned, least recently used first ([`eviction`]). All of ROOT may be
//! lost at any time: the files are then downloaded again.
//!
//! The cache must never: answer a client (netboot's HTTP server does), or decide which files are
//! fetched or who may read them ([`Readers`] does).
//!
//! Enter at [`Cache::open`] and [`Cache::fetch`]; [`registry::Mirror`] for images of containers;
//! tests of other crates at [`fake::cache`].

mod access;
mod checksum;
mod download;
mod error;
pub mod eviction;
mod layout;
mod origin;
pub mod registry;
mod remote_file;
mod retention;
pub mod upload;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

pub use access::{CacheAccess, Readers};
pub use checksum::{Checksum, InvalidChecksum};
pub use download::in_progress::{Download, DownloadStart, Progress, RunningDownload};
pub use error::Error;
pub use eviction::{SystemVolume, Volume, fake};
pub use oci_reference::Digest;
pub use origin::connector;
pub use origin::{HttpOrigin, Origin, Part, Refusal, RefusedAddress, reach};
pub(crate) use remote_file::read_path;
pub use remote_file::{RemoteFile, UPLOAD_SCHEME, shown};
pub use retention::RemoveError;

use download::in_progress::{self, State};
use download::slots::DownloadSlots;
use layout::Layout;

/// Maximum downloads that run or wait; further ones are refused.
const MAX_WAITING: usize = 256;
/// Time after a failed download during which its error is returned without a new download.
const REST: Duration = Duration::from_secs(10);
/// Maximum failed downloads whose error is remembered.
const MAX_FAILED: usize = 256;

/// Complete file of the cache, which is not evicted while a value of this type lives.
#[derive(Debug, Clone)]
pub struct Blob {
    /// Path of the file.
    pub path: PathBuf,
    /// SHA-256 of the content.
    pub digest: Digest,
    /// Size of the file in bytes.
    pub size: u64,
    _lease: Arc<()>,
}

/// The cache. Cheap to clone.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    layout: Layout,
    origin: Arc<dyn Origin>,
    /// Budget of the cache, in percent of the partition.
    budget: u64,
    slots: DownloadSlots,
    /// Lock that is held while files are evicted and space is reserved.
    admission: Mutex<()>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    running: HashMap<String, (RemoteFile, Download)>,
    failed: HashMap<String, Failure>,
    leases: HashMap<Digest, Arc<()>>,
    /// Offered files by key, each with the number of its offers.
    offered: HashMap<String, (RemoteFile, usize)>,
    pinned: BTreeSet<Digest>,
    /// Bytes that are reserved for running downloads.
    reserved: u64,
    /// True after the owner was notified that the partition is nearly full.
    noticed: bool,
}

struct Failure {
    at: Instant,
    error: Arc<Error>,
}

impl Cache {
    /// Opens the cache in the folder `root`, which is created if missing. `budget` is the
    /// percentage of the partition above which files are evicted for new ones.
    ///
    /// # Errors
    /// The folder cannot be created or read ([`Error::Artifact`]).
    pub fn open(
        root: impl Into<PathBuf>,
        origin: Arc<dyn Origin>,
        budget: u64,
        volume: Arc<dyn Volume>,
    ) -> Result<Self, Error> {
        let (slots, layout) = (DownloadSlots::new(), Layout::open(root.into(), volume)?);
        let (admission, table) = (Mutex::default(), Mutex::default());
        Ok(Self(Arc::new(Inner { layout, origin, budget, slots, admission, table })))
    }

    /// Starts a download, or joins a running one. The download continues even if all callers drop
    /// it. Within 10 s after a failure, its error is returned without a new download.
    pub async fn fetch(&self, remote: &RemoteFile) -> Download {
        let (cache, file) = (self.clone(), remote.clone());
        let started = blocking(move || cache.blocking_fetch(&file)).await;
        started.unwrap_or_else(|error| Download::finished(Err(Arc::new(error))))
    }

    /// Starts or joins a download like [`Cache::fetch`], on a thread that may block. Needs a Tokio
    /// runtime.
    pub fn blocking_fetch(&self, remote: &RemoteFile) -> Download {
        if let Some(blob) = self.get(remote) {
            return Download::finished(Ok(blob));
        }
        let key = remote.key();
        let mut table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, running)) = table.running.get(&key) {
            return running.clone();
        }
        if let Some(failure) = table.failed.get(&key)
            && failure.at.elapsed() < REST
        {
            return Download::finished(Err(Arc::clone(&failure.error)));
        }
        if table.running.len() >= MAX_WAITING {
            let reason = format!("{MAX_WAITING} other files are being fetched");
            return Download::finished(Err(Arc::new(remote.failed(reason, true))));
        }
        let (sender, state) = watch::channel(State::default());
        let download = Download::new(state, self.0.layout.part_path(&key));
        table.running.insert(key.clone(), (remote.clone(), download.clone()));
        drop(table);
        let (cache, remote) = (self.clone(), remote.clone());
        tokio::spawn(async move {
            let origin = &*cache.0.origin;
            let result = download::run(&cache, origin, &remote, &sender).await.map_err(Arc::new);
            if let Err(error) = &result {
                tracing::warn!(url = remote.shown(), error = %stdx::chain(error), "not fetched");
            }
            cache.table(|table| table.end(key, &result));
            sender.send_modify(|state| state.end(result));
        });
        download
    }

    /// Returns the file; `None` if the cache does not have it. Blocks, because it reads files.
    pub fn get(&self, remote: &RemoteFile) -> Option<Blob> {
        let digest = self.0.layout.digest(remote)?;
        let size = self.0.layout.touch(digest)?;
        Some(self.lease(digest, size))
    }

    /// Returns the error of the last download that ended, also while the next one runs. `None`
    /// after a download that succeeded.
    pub fn failure(&self, remote: &RemoteFile) -> Option<Arc<Error>> {
        self.table(|table| table.failed.get(&remote.key()).map(|it| Arc::clone(&it.error)))
    }

    /// Returns the downloads that run or wait for a slot.
    pub fn downloads(&self) -> Vec<(RemoteFile, Progress)> {
        let running =
            |(remote, download): &(RemoteFile, Download)| (remote.clone(), download.progress());
        self.table(|table| table.running.values().map(running).collect())
    }

    fn lease(&self, digest: Digest, size: u64) -> Blob {
        let lease = self.table(|table| Arc::clone(table.leases.entry(digest).or_default()));
        Blob { path: self.0.layout.blob(digest), digest, size, _lease: lease }
    }

    fn table<T>(&self, with: impl FnOnce(&mut Table) -> T) -> T {
        with(&mut self.0.table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs file operations in a thread for blocking work. An error means that the runtime shuts down.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => Ok(done),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => Err(in_progress::shutdown()),
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

impl RemoteFile {
    fn failed(&self, reason: String, passing: bool) -> Error {
        Error::Fetch { url: self.shown(), reason, passing }
    }
}

#[cfg(test)]
mod tests;
