//! Writer thread: combines all waiting writes into one transaction with one disk sync.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use redb::{ReadableTable, Table, WriteTransaction};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::CommitSet;
use super::ages::Ages;
use crate::error::{damaged, storage};
use crate::free_space::Gauge;
use crate::options::Options;
use crate::shared::Shared;
use crate::tables::{
    CHANGELOG, META, META_FLOOR, META_LOG_BYTES, META_REVISION, OBJECTS, Opened, encode_change,
    encode_object,
};
use crate::transaction::{Totals, begin};
use crate::vault::Vault;
use crate::{Change, Error, Txn};

/// Maximum number of writes in one commit.
pub(crate) const GROUP_WRITES: usize = 64;
/// Maximum wait for as many writes as the last group had. A single writer never waits.
const GROUP_WAIT: Duration = Duration::from_millis(2);
/// Maximum bytes of changes in one commit; the write that exceeds the limit still belongs to it.
const GROUP_BYTES: usize = 32 * 1024 * 1024;
/// Interval at which an idle writer removes changes that exceed their age.
const TRIM_EVERY: Duration = Duration::from_secs(600);

/// Write of one caller.
pub(crate) trait Job: Send {
    /// Runs the closure. Returns the changes to commit; `None` if the closure failed.
    fn run(&mut self, txn: Txn<'_>) -> Option<CommitSet>;
    /// Sends the result to the caller after the commit of the group.
    fn answer(self: Box<Self>, committed: Result<(), Error>);
}

/// Write closure of a caller, and its result until the group is committed.
pub(crate) struct Write<T, E, F> {
    closure: Option<F>,
    outcome: Result<Result<T, E>, Error>,
    reply: oneshot::Sender<Result<Result<T, E>, Error>>,
    /// Place in the write queue, released when the caller gets the result.
    place: OwnedSemaphorePermit,
}

impl<T, E, F> Write<T, E, F> {
    pub fn new(
        closure: F,
        reply: oneshot::Sender<Result<Result<T, E>, Error>>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self { closure: Some(closure), outcome: Err(Error::Closed), reply, place }
    }
}

impl<T, E, F> Job for Write<T, E, F>
where
    F: FnOnce(&mut Txn<'_>) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    fn run(&mut self, mut txn: Txn<'_>) -> Option<CommitSet> {
        let closure = self.closure.take()?;
        // Continuing after a panic is sound: the buffered changes are dropped, and nothing else is
        // shared.
        let outcome = catch_unwind(AssertUnwindSafe(|| closure(&mut txn)));
        let (outcome, kept) = match outcome {
            Ok(Ok(value)) => match txn.finish() {
                Ok(kept) => (Ok(Ok(value)), Some(kept)),
                Err(error) => (Err(error), None),
            },
            Ok(Err(refusal)) => (Ok(Err(refusal)), None),
            Err(panic) => (Err(Error::Panicked { message: panic_message(&*panic) }), None),
        };
        self.outcome = outcome;
        kept
    }

    fn answer(self: Box<Self>, committed: Result<(), Error>) {
        drop(self.place);
        // The caller may have gone; committed changes stay.
        let _ = self.reply.send(committed.and(self.outcome));
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
        .to_owned()
}

/// State of the writer thread.
pub(crate) struct Writer {
    pub shared: Arc<Shared>,
    pub jobs: Receiver<Box<dyn Job>>,
    pub totals: Totals,
    pub options: Options,
    pub gauge: Gauge,
    pub ages: Ages,
}

/// Ends the watches on drop: whenever the writer stops, also by a panic.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.hub.close();
    }
}

impl Writer {
    /// Commits writes until every handle of the store is dropped.
    pub fn run(mut self) {
        let _close = CloseOnDrop(self.shared.clone());
        let mut last = 1;
        loop {
            match self.jobs.recv_timeout(TRIM_EVERY) {
                Ok(first) => {
                    let group = self.collect(first, last);
                    last = group.len();
                    self.serve(group);
                }
                Err(RecvTimeoutError::Timeout) => self.serve(Vec::new()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Collects the waiting jobs, and waits up to 2 ms for as many writers as the last group had.
    fn collect(&self, first: Box<dyn Job>, last: usize) -> Vec<Box<dyn Job>> {
        let deadline = Instant::now() + GROUP_WAIT;
        let mut group = vec![first];
        while group.len() < GROUP_WRITES {
            let wait = match group.len() < last {
                true => deadline.saturating_duration_since(Instant::now()),
                false => Duration::ZERO,
            };
            match self.jobs.recv_timeout(wait) {
                Ok(job) => group.push(job),
                Err(_) => break,
            }
        }
        group
    }

    fn serve(&mut self, mut group: Vec<Box<dyn Job>>) {
        loop {
            let stopped = self.shared.stopped.borrow().clone();
            let (served, done) = match stopped {
                Some(cause) => (Err(Error::Refusing { cause }), group.len()),
                None => match self.commit(&mut group) {
                    Ok(done) => (Ok(()), done),
                    Err(error) => {
                        tracing::error!(error = stdx::chain(&error), "the store stops writing");
                        self.shared.stopped.send_replace(Some(Arc::new(error.clone())));
                        (Err(error), group.len())
                    }
                },
            };
            for job in group.drain(..done) {
                job.answer(served.clone());
            }
            if group.is_empty() {
                return;
            }
        }
    }

    /// Commits the changes of `group` in one transaction, durably on return. Returns the number of
    /// jobs that ran; the others exceed the size of a commit and run in the next.
    fn commit(&mut self, group: &mut [Box<dyn Job>]) -> Result<usize, Error> {
        let now = u64::try_from(self.options.clock.now().as_millisecond()).unwrap_or(0);
        let txn = begin(&self.shared.db)?;
        let free_space = self.gauge.read(&txn);
        self.shared.note(free_space);
        let mut tables = Tables::open(&txn, self.totals)?;
        let vault = &self.shared.vault;
        let (mut leapt, mut touched) = (None, false);
        let mut changes = Vec::new();
        let (mut done, mut writes, mut bytes) = (0, 0, 0);
        for job in group {
            if bytes > GROUP_BYTES {
                break;
            }
            done += 1;
            let base = Opened { table: &tables.objects, vault };
            let free_space = free_space.after(bytes as u64);
            let view = Txn::new(&base, tables.totals.revision + 1, free_space);
            let Some(kept) = job.run(view) else { continue };
            touched |= kept.touched;
            if let Some(revision) = kept.leap {
                tables.leap(revision)?;
                changes.clear();
                leapt = Some(revision);
            }
            if !kept.changes.is_empty() {
                tables.apply(&kept.changes, now, vault)?;
                bytes += kept.changes.iter().map(Change::weight).sum::<usize>();
                changes.extend(kept.changes);
                writes += 1;
            }
        }
        let log_bytes = free_space.log_bytes(self.options.log_bytes);
        let (steady, log_age) = (self.options.clock.steady(), self.options.log_age);
        let aged = self.ages.aged(steady, log_age);
        let aged = tables.trim(&self.options, log_bytes, aged)?;
        let totals = tables.finish()?;
        self.ages.mark(steady, totals.revision, log_age);
        if totals == self.totals && !touched {
            txn.abort().map_err(storage("abort a write to"))?;
            return Ok(done);
        }
        txn.commit().map_err(storage("commit to"))?;
        self.totals = totals;
        self.shared.commits.fetch_add(1, Relaxed);
        self.shared.writes.fetch_add(writes, Relaxed);
        if let Some(revision) = leapt {
            self.shared.hub.leap(revision);
        }
        self.shared.hub.publish(changes);
        self.shared.hub.forget(aged);
        Ok(done)
    }
}

/// Tables of one write transaction.
struct Tables<'txn> {
    objects: Table<'txn, &'static [u8], &'static [u8]>,
    log: Table<'txn, u64, &'static [u8]>,
    meta: Table<'txn, &'static str, u64>,
    totals: Totals,
}

impl<'txn> Tables<'txn> {
    fn open(txn: &'txn WriteTransaction, totals: Totals) -> Result<Self, Error> {
        Ok(Self {
            objects: txn.open_table(OBJECTS).map_err(storage("write to"))?,
            log: txn.open_table(CHANGELOG).map_err(storage("write to"))?,
            meta: txn.open_table(META).map_err(storage("write to"))?,
            totals,
        })
    }

    /// Writes the changes of one job to the objects and the log.
    fn apply(&mut self, changes: &[Change], now: u64, vault: &Vault) -> Result<(), Error> {
        for change in changes {
            let key = change.key.encode();
            match change.current() {
                Some(stored) => {
                    let row = encode_object(&change.key, &stored, vault)?;
                    self.objects.insert(key.as_slice(), row.as_slice()).map(drop)
                }
                None => self.objects.remove(key.as_slice()).map(drop),
            }
            .map_err(storage("write to"))?;
            let row = encode_change(change, now, vault)?;
            self.log.insert(change.revision, row.as_slice()).map_err(storage("write to"))?;
            self.totals.log_bytes += row.len() as u64;
            self.totals.revision = change.revision;
        }
        Ok(())
    }

    /// Continues after `revision`, which must be higher than the current revision. Empties the log,
    /// because it must not have gaps.
    fn leap(&mut self, revision: u64) -> Result<(), Error> {
        self.log.retain(|_, _| false).map_err(storage("trim"))?;
        self.totals = Totals { revision, floor: revision, log_bytes: 0 };
        Ok(())
    }

    /// Removes the oldest changes while the log exceeds a limit, and all changes up to revision
    /// `old`. Returns the last removed revision up to `old`, or zero.
    fn trim(&mut self, options: &Options, log_bytes: u64, old: u64) -> Result<u64, Error> {
        let mut aged = 0;
        loop {
            let Some((revision, length)) = self.oldest()? else { break };
            let old = revision <= old;
            let full = self.totals.revision - self.totals.floor > options.log_entries
                || self.totals.log_bytes > log_bytes;
            if !(full || old) {
                break;
            }
            self.log.remove(revision).map_err(storage("trim"))?;
            self.totals.floor = revision;
            self.totals.log_bytes = self
                .totals
                .log_bytes
                .checked_sub(length)
                .ok_or_else(|| damaged("its log is larger than its totals"))?;
            if old {
                aged = revision;
            }
        }
        Ok(aged)
    }

    /// Returns revision and length of the oldest row of the log; `None` if the log is empty.
    fn oldest(&self) -> Result<Option<(u64, u64)>, Error> {
        let first = self.log.first().map_err(storage("trim"))?;
        let Some((revision, row)) = first else { return Ok(None) };
        Ok(Some((revision.value(), row.value().len() as u64)))
    }

    fn finish(mut self) -> Result<Totals, Error> {
        let Totals { revision, floor, log_bytes } = self.totals;
        for (name, value) in
            [(META_REVISION, revision), (META_FLOOR, floor), (META_LOG_BYTES, log_bytes)]
        {
            self.meta.insert(name, value).map_err(storage("write to"))?;
        }
        Ok(self.totals)
    }
}
