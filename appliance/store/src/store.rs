//! Handle of the store; cheap to clone. Reads run on the caller's thread, writes on the writer
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

/// Maximum number of writes in the queue or in a commit; further callers wait.
const WRITE_QUEUE: usize = 1024;

/// Handle of an open store. Clones share the store. Dropping the last handle stops the writer after
/// its pending writes; the file is closed when the last [`Watch`] is dropped too.
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

/// Counters for metrics and tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Last revision on disk.
    pub revision: u64,
    /// Number of commits since the store was opened; each is one disk sync.
    pub commits: u64,
    /// Number of writes in all commits.
    pub writes: u64,
    /// Number of writes that are in the queue or in a commit now.
    pub waiting: usize,
    /// Number of open watches.
    pub watches: usize,
}

impl Store {
    /// Opens the store in the file at `path`; creates the file (mode 0600) if it does not exist.
    /// The folder must exist. Blocks; a repair after a crash takes about 2.5 s per gigabyte.
    ///
    /// # Errors
    /// [`Error::FutureFormat`], [`Error::InUse`], [`Error::Damaged`], [`Error::WrongKey`],
    /// [`Error::NoRoom`], or the disk fails.
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

    /// Runs `f` on the writer thread. Returns its result after its changes are on disk. A closure
    /// that returns `Err` changes nothing; the inner result has its error.
    ///
    /// The closure must be fast, because every other writer waits for it. Dropping the future does
    /// not cancel the write.
    ///
    /// # Errors
    /// The outer error: the disk failed ([`Error::Storage`], then [`Error::Refusing`]), the closure
    /// panicked, or its changes exceed a limit. After [`Error::Storage`], only opening the store
    /// again shows whether the write was stored.
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

    /// Returns the last committed state of the object; `None` if it does not exist.
    pub fn get(&self, key: &Key) -> Result<Option<Stored>, Error> {
        let txn = self.handle.shared.db.begin_read().map_err(storage("read"))?;
        let table = txn.open_table(OBJECTS).map_err(storage("read"))?;
        Opened { table: &table, vault: &self.handle.shared.vault }.object(key)
    }

    /// Returns every object of `resource`, or of only its `namespace`, in key order, and the
    /// revision of the list. A watch after this revision misses no change.
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

    /// Returns the last revision on disk.
    pub fn revision(&self) -> u64 {
        self.handle.shared.revision()
    }

    /// Watches the changes after revision `after` of `resource`, or of only its `namespace`.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the log no longer reaches back to `after`, [`Error::Future`] if
    /// `after` is above the store's revision. The client must then list again.
    pub fn watch(
        &self,
        resource: &str,
        namespace: Option<&str>,
        after: u64,
    ) -> Result<Watch, Error> {
        Watch::new(self.handle.shared.clone(), Some(resource), namespace, after)
    }

    /// Watches the changes of all resources after revision `after`.
    ///
    /// # Errors
    /// The errors of [`Self::watch`].
    pub fn watch_all(&self, after: u64) -> Result<Watch, Error> {
        Watch::new(self.handle.shared.clone(), None, None, after)
    }

    /// Trims the log to its limits of count, size and age. Every write also trims the log, and an
    /// idle store every ten minutes. Returns the oldest revision that a watch can start after.
    pub async fn compact(&self) -> Result<u64, Error> {
        match self.write(|_| Ok::<_, std::convert::Infallible>(())).await? {
            Ok(()) => {}
            Err(never) => match never {},
        }
        let txn = self.handle.shared.db.begin_read().map_err(storage("read"))?;
        meta(&txn, META_FLOOR)
    }

    /// Commits a transaction without changes and waits for the disk, to check that the store
    /// accepts writes.
    ///
    /// # Errors
    /// The errors of [`Self::write`].
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

    /// Returns the error of the failed commit after which the store refuses writes; `None` while it
    /// accepts writes. Only opening the store again ends this state.
    pub fn stopped(&self) -> Option<Arc<Error>> {
        self.handle.shared.stopped.borrow().clone()
    }

    /// Waits until a commit has failed; never returns while no commit fails.
    pub async fn until_stopped(&self) -> Arc<Error> {
        let mut stopped = self.handle.shared.stopped.subscribe();
        match stopped.wait_for(Option::is_some).await.map(|stopped| stopped.clone()) {
            Ok(Some(cause)) => cause,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Returns the free space of the store's disk, as of the last write.
    pub fn free_space(&self) -> FreeSpace {
        *self.handle.shared.free_space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the counters of the store.
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

    /// Returns the last revision on disk. Reads it from the database, because the hub is updated a
    /// moment after readers can see a commit. If the database fails, reads it from the hub.
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
