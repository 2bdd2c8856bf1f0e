//! Answers that promise leases, delayed until the leases are durable.
//!
//! One commit serves all requests that arrived during the previous commit. So the disk is written
//! at most once in each [`COMMIT_EVERY`], however many machines boot. Answers without a stored
//! lease (offers, ACKs for reserved addresses outside of pool networks) are not delayed.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::engine::Outgoing;
use crate::error::Error;
use crate::leases::{Change, LeaseStore};

/// Minimum interval between the starts of two commits; the first commit after a pause does not
/// wait. Clients do not notice the delay. A rack that is switched on causes a few writes, not one
/// for each machine.
const COMMIT_EVERY: Duration = Duration::from_millis(10);
/// Maximum delayed answers; at the limit the service reads no more requests until a commit ends.
const MAX_PENDING: usize = 4096;
/// Capacity of the thread's queue: only one commit runs at a time.
const REQUESTS_MAX: usize = 1;
/// Consecutive failed commits that end the service. Until then answers without a lease are sent.
const MAX_FAILED: u32 = 8;

/// Changes that wait for a commit, and answers that wait for the changes.
pub(crate) struct PendingAnswers {
    /// Thread that commits; `None` if leases are not stored.
    committer: Option<Committer>,
    /// Changes that are not in the running commit, and the answers that wait for these changes.
    changes: Vec<Change>,
    waiting: Vec<Outgoing>,
    running: Option<Commit>,
    /// Earliest start of the next commit.
    due: Instant,
    /// True if a commit failed and no request arrived since: no new commit starts.
    idle: bool,
    failed: u32,
}

struct Commit {
    changes: Arc<[Change]>,
    waiting: Vec<Outgoing>,
    done: oneshot::Receiver<Result<(), Error>>,
}

/// Request to the thread: changes to commit.
struct CommitRequest {
    changes: Arc<[Change]>,
    done: oneshot::Sender<Result<(), Error>>,
}

/// Thread that only commits leases. On a shared thread, a slow name server or a slow disk would
/// delay the machines' addresses.
struct Committer {
    requests: Option<mpsc::SyncSender<CommitRequest>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Committer {
    fn start(store: Arc<dyn LeaseStore>) -> Self {
        let (requests, received) = mpsc::sync_channel::<CommitRequest>(REQUESTS_MAX);
        let run = move || {
            for CommitRequest { changes, done } in received {
                // The receiver is gone when the service ends.
                done.send(store.commit(&changes)).ok();
            }
        };
        // Without the thread every commit fails, as on a broken disk.
        let thread = thread::Builder::new().name("leases".to_owned()).spawn(run);
        let thread = thread.inspect_err(|error| tracing::error!(%error, "cannot start a thread"));
        Self { requests: Some(requests), thread: thread.ok() }
    }

    /// Sends changes to the thread. If the thread has ended, the result's sender is dropped.
    fn commit(&self, changes: Arc<[Change]>) -> oneshot::Receiver<Result<(), Error>> {
        let (done, answer) = oneshot::channel();
        if let Some(requests) = &self.requests {
            requests.send(CommitRequest { changes, done }).ok();
        }
        answer
    }
}

impl Drop for Committer {
    /// Waits for the end of the running commit, so that the store is closed for its next user.
    fn drop(&mut self) {
        self.requests = None;
        self.thread.take().map(thread::JoinHandle::join);
    }
}

impl PendingAnswers {
    /// Creates the queue. Without a store, every change counts as durable at once.
    pub fn new(store: Option<Arc<dyn LeaseStore>>) -> Self {
        Self {
            committer: store.map(Committer::start),
            changes: Vec::new(),
            waiting: Vec::new(),
            running: None,
            due: Instant::now(),
            idle: false,
            failed: 0,
        }
    }

    /// Adds changes to commit, and answers. Returns the answers that can be sent now.
    pub fn take(&mut self, changes: Vec<Change>, answers: Vec<Outgoing>) -> Vec<Outgoing> {
        if self.committer.is_some() {
            self.changes.extend(changes);
        }
        self.idle = false;
        let waits_for = match &mut self.running {
            _ if !self.changes.is_empty() => &mut self.waiting,
            Some(commit) => &mut commit.waiting,
            None => return answers,
        };
        let (pending, rest): (Vec<_>, _) = answers.into_iter().partition(|it| it.needs_commit);
        waits_for.extend(pending);
        rest
    }

    /// Returns true if fewer than [`MAX_PENDING`] answers are waiting.
    pub fn have_room(&self) -> bool {
        let running = self.running.as_ref().map_or(0, |commit| commit.waiting.len());
        self.waiting.len() + running < MAX_PENDING
    }

    /// Commits the changes, and returns the answers that can be sent now. Waits forever while there
    /// is nothing to commit. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`MAX_FAILED`] commits in a row have failed; the error is the last one.
    pub async fn committed(&mut self) -> Result<Vec<Outgoing>, Error> {
        let done = match &mut self.running {
            Some(commit) => &mut commit.done,
            None => {
                let commit = self.begin().await;
                &mut self.running.insert(commit).done
            }
        };
        let result = done.await;
        let Some(commit) = self.running.take() else { return Ok(Vec::new()) };
        let result = result.unwrap_or_else(|source| {
            Err(Error::Leases { attempt: "reach", source: Box::new(source) })
        });
        match result {
            Ok(()) => {
                self.failed = 0;
                Ok(commit.waiting)
            }
            Err(error) => {
                self.failed += 1;
                tracing::error!(error = %stdx::chain(&error), "cannot store leases");
                // The later changes are applied after these.
                self.changes.splice(..0, commit.changes.iter().copied());
                self.idle = self.waiting.is_empty();
                if self.failed >= MAX_FAILED { Err(error) } else { Ok(Vec::new()) }
            }
        }
    }

    async fn begin(&mut self) -> Commit {
        let Some(committer) =
            self.committer.as_ref().filter(|_| !self.changes.is_empty() && !self.idle)
        else {
            return std::future::pending().await;
        };
        sleep_until(self.due).await;
        self.due = Instant::now() + COMMIT_EVERY;
        let changes: Arc<[Change]> = std::mem::take(&mut self.changes).into();
        let waiting = std::mem::take(&mut self.waiting);
        let done = committer.commit(Arc::clone(&changes));
        Commit { changes, waiting, done }
    }
}

#[cfg(test)]
mod tests;
