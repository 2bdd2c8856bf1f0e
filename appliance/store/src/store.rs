//! Handle of the store: cheap to clone. Reads run on the caller's thread, writes on the writer
//! thread.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use redb::{Database, ReadableDatabase};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::error::storage;
use crate::free_space::Gauge;
use crate::hub::Hub;
use crate::options::Options;
use crate::shared::Shared;
use crate::tables::{META_FLOOR, META_REVISION, OBJECTS, Objects as _, Opened, meta};
use crate::transaction::Totals;
use crate::write::ages::Ages;
use crate::write::group::{Job, Write, Writer};
use crate::{Error, FreeSpace, Key, Stored, Txn, Watch};

/// Maximum number of writes that wait or are being committed; further callers wait for a place.
const WRITE_QUEUE: usize = 1024;

/// The store. Clones share it; when the last one is dropped the writer finishes and stops, and the
/// file is released once the last [`Watch`] is gone too.
#[derive(Clone)]
pub struct Store {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    jobs: Option<SyncSender<Box<dyn Job>>>,
    writer: Option<JoinHandle<()>>,
}

/// Figures for metrics and tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Last revision on disk.
    pub revision: u64,
    /// Number of commits since the store was opened; each is one disk sync.
    pub commits: u64,
    /// Number of writes in these commits.
    pub writes: u64,
    /// Number of writes that wait for the disk now.
    pub waiting: usize,
    /// Number of open watches.
    pub watches: usize,
}

impl Store {
    /// Opens the store in the file at `path`; creates it (mode 0600) if there is none. Its folder
    /// must exist. Blocks; after a crash for the time of a repair, about 2.5 s per gigabyte.
    ///
    /// # Errors
    /// [`Error::FutureFormat`], [`Error::InUse`], [`Error::Damaged`], or those of the disk.
    pub fn open(path: &Path, options: Options) -> Result<Self, Error> {
        let (db, totals) = crate::file::open::open(path, &options)?;
        Self::start(path, db, totals, options)
    }

    pub(crate) fn start(
        path: &Path,
        db: Database,
        totals: Totals,
        options: Options,
    ) -> Result<Self, Error> {
        let gauge = Gauge::new(path, &options);
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            copying: Mutex::new(()),
            db,
            vault: options.vault(),
            hub: Hub::new(totals.revision),
            commits: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            stopped: watch::Sender::default(),
            free_space: Mutex::new(gauge.without_pages()),
        });
        let (sender, jobs) = sync_channel(WRITE_QUEUE);
        let writer =
            Writer { shared: shared.clone(), jobs, totals, options, gauge, ages: Ages::default() };
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        let writer = thread
            .spawn(move || writer.run())
            .map_err(|source| storage("start the writer of")(redb::Error::Io(source)))?;
        let places = Arc::new(Semaphore::new(WRITE_QUEUE));
        let handle = Handle { shared, places, jobs: Some(sender), writer: Some(writer) };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// Run `f` on the writer thread and answer when what it changed is on disk. A closure that
    /// returns `Err` changes nothing, and the inner result carries its error.
    ///
    /// The closure must be quick: every other writer waits for it. Dropping the future does not
    /// take the write back.
    ///
    /// # Errors
    /// The outer error: the disk failed ([`Error::Storage`], then [`Error::Refusing`]), the closure
    /// panicked, or went over a limit. After [`Error::Storage`] it is not known whether the write
    /// is there until the store is opened again.
    pub async fn write<T, E, F>(&self, f: F) -> Result<Result<T, E>, Error>
    where
        F: FnOnce(&mut Txn<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let handle = &*self.handle;
        let place = handle.places.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Write::new(f, reply, place));
        // The channel is never full: it holds as many jobs as there are places.
        let sender = handle.jobs.as_ref().ok_or(Error::Closed)?;
        sender.try_send(job).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Returns the object as last committed.
    pub fn get(&self, key: &Key) -> Result<Option<Stored>, Error> {
        let txn = self.handle.shared.db.begin_read().map_err(storage("read"))?;
        let table = txn.open_table(OBJECTS).map_err(storage("read"))?;
        Opened { table: &table, vault: &self.handle.shared.vault }.object(key)
    }

    /// Returns every object of `resource`, or of one `namespace` of it, in key order, and the
    /// revision of the list. A watch after that revision misses no change.
    pub fn list(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> Result<(u64, Vec<(Key, Stored)>), Error> {
        let txn = self.handle.shared.db.begin_read().map_err(storage("read"))?;
        let table = txn.open_table(OBJECTS).map_err(storage("read"))?;
        let objects = Opened { table: &table, vault: &self.handle.shared.vault };
        Ok((meta(&txn, META_REVISION)?, objects.objects(resource, namespace)?))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    /// Last revision on disk.
    pub fn revision(&self) -> u64 {
        self.handle.shared.revision()
    }

    /// The changes above revision `after`, of `resource` or of one `namespace` of it.
    ///
    /// # Errors
    /// [`Error::Compacted`] when the log no longer reaches back to `after`, [`Error::Future`] when
    /// `after` has not happened here: list again.
    pub fn watch(
        &self,
        resource: &str,
        namespace: Option<&str>,
        after: u64,
    ) -> Result<Watch, Error> {
        Watch::new(self.handle.shared.clone(), Some(resource), namespace, after)
    }

    /// The changes of every resource above revision `after`.
    ///
    /// # Errors
    /// As [`Self::watch`].
    pub fn watch_all(&self, after: u64) -> Result<Watch, Error> {
        Watch::new(self.handle.shared.clone(), None, None, after)
    }

    /// Trim the log to its limits of count, size and age; every write does so too, and an idle
    /// store every ten minutes. Answers the oldest revision that can still be watched after.
    pub async fn compact(&self) -> Result<u64, Error> {
        match self.write(|_| Ok::<_, std::convert::Infallible>(())).await? {
            Ok(()) => {}
            Err(never) => match never {},
        }
        let txn = self.handle.shared.db.begin_read().map_err(storage("read"))?;
        meta(&txn, META_FLOOR)
    }

    /// Writes to the disk, and waits for it, though nothing changes: after this the store is known
    /// to take writes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn touch(&self) -> Result<(), Error> {
        let touched = self.write(|txn| {
            txn.touch();
            Ok::<_, std::convert::Infallible>(())
        });
        match touched.await? {
            Ok(()) => Ok(()),
            Err(never) => match never {},
        }
    }

    /// Error of the failed commit after which nothing is written any more, if any. A reopened store
    /// goes on.
    pub fn stopped(&self) -> Option<Arc<Error>> {
        self.handle.shared.stopped.borrow().clone()
    }

    /// Waits until a commit has failed, for ever while none does.
    pub async fn until_stopped(&self) -> Arc<Error> {
        let mut stopped = self.handle.shared.stopped.subscribe();
        match stopped.wait_for(Option::is_some).await.map(|stopped| stopped.clone()) {
            Ok(Some(cause)) => cause,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Free space on the store's disk, as of the last write.
    pub fn free_space(&self) -> FreeSpace {
        *self.handle.shared.free_space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Figures of the store for metrics.
    pub fn stats(&self) -> Stats {
        let shared = &self.handle.shared;
        Stats {
            revision: shared.revision(),
            commits: shared.commits.load(Relaxed),
            writes: shared.writes.load(Relaxed),
            waiting: WRITE_QUEUE - self.handle.places.available_permits(),
            watches: shared.hub.watches(),
        }
    }
}

impl Shared {
    pub fn note(&self, free_space: FreeSpace) {
        *self.free_space.lock().unwrap_or_else(PoisonError::into_inner) = free_space;
    }

    /// Last revision on disk. Read from the database, since the hub learns of a commit a moment
    /// after readers can see it; from the hub if the database fails.
    pub fn revision(&self) -> u64 {
        let read = || meta(&self.db.begin_read().map_err(storage("read"))?, META_REVISION);
        read().unwrap_or_else(|_: Error| self.hub.progress().revision)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.jobs = None;
        let Some(writer) = self.writer.take() else { return };
        // The last clone may be dropped inside a write closure. The writer cannot wait for itself
        // there, and ends on its own.
        if writer.thread().id() != std::thread::current().id() && writer.join().is_err() {
            tracing::error!("the store's writer had panicked");
        }
    }
}
