//! Runs a reconciler: on signals, on a tick, never twice at once for one object, many at once for
//! many, whoever has waited for longest first. Upstream runs one at a time, so that one slow BMC
//! holds up the site (rufio#311).

mod queue;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;
use stdx::Backoff;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::queue::Queue;
use objects::ObjectError;

/// Objects of one kind that are reconciled at once.
const AT_ONCE_MAX: usize = 32;
/// Objects that are reconciled at once where a reconcile waits for a BMC most of the time: more
/// than the BMCs that a dead management network silences in a rack or two.
pub const BMCS_AT_ONCE_MAX: usize = 512;
/// The first wait after an error.
const RETRY_FIRST: Duration = Duration::from_millis(200);
/// The longest wait after errors.
const RETRY_MAX: Duration = Duration::from_secs(15);

/// Longest sleep of a controller with nothing to do.
const REST: Duration = Duration::from_secs(3600);

/// When a reconciler wants to look at its object again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// On the next signal.
    OnSignal,
    /// After this long, or on a signal.
    After(Duration),
}

/// What a reconciler returns.
pub type Reconciled<'a> = Pin<Box<dyn Future<Output = Result<Again, ObjectError>> + Send + 'a>>;

/// Brings one object closer to what is wanted.
pub trait Reconciler: Send + Sync + 'static {
    /// The kind, for logs.
    fn name(&self) -> &'static str;
    /// Objects that are reconciled at once. A place is held for as long as a reconcile waits.
    fn at_once_max(&self) -> usize {
        AT_ONCE_MAX
    }
    /// Look at the object and take the steps that are due.
    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a>;
}

#[derive(Default)]
struct Schedule {
    queue: Mutex<Queue>,
    wake: Notify,
}

impl Schedule {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Signals a running controller.
#[derive(Clone, Default)]
pub struct Signals(Arc<Schedule>);

impl Signals {
    /// Look at this object soon.
    pub fn signal(&self, key: ObjectKey) {
        self.at(key, Instant::now());
    }

    fn at(&self, key: ObjectKey, when: Instant) {
        self.0.queue().put(key, when);
        self.0.wake.notify_one();
    }
}

/// A reconciler with its schedule.
pub struct Controller {
    reconciler: Arc<dyn Reconciler>,
    signals: Signals,
}

impl Controller {
    /// A controller that has nothing to do until it is signalled.
    pub fn new(reconciler: Arc<dyn Reconciler>) -> Self {
        Self { reconciler, signals: Signals::default() }
    }

    /// The way to wake it.
    pub fn signals(&self) -> Signals {
        self.signals.clone()
    }

    /// Reconcile until `shutdown`. Reconciles under way are stopped there: they are made to be.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut failures: HashMap<ObjectKey, Backoff> = HashMap::new();
        let mut jobs: JoinSet<(ObjectKey, Result<Again, ObjectError>)> = JoinSet::new();
        loop {
            let next = self.begin(&mut jobs);
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.signals.0.wake.notified() => {}
                () = tokio::time::sleep_until(next) => {}
                Some(ended) = jobs.join_next() => match ended {
                    Ok((key, result)) => {
                        self.signals.0.queue().end(&key);
                        self.plan(key, result, &mut failures);
                    }
                    // A bug must not be hidden behind a controller that quietly stands still.
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
            }
        }
    }

    /// Begins with every object that is due and for which there is a place; returns when the next
    /// one is due.
    fn begin(&self, jobs: &mut JoinSet<(ObjectKey, Result<Again, ObjectError>)>) -> Instant {
        let now = Instant::now();
        while jobs.len() < self.reconciler.at_once_max() {
            let mut queue = self.signals.0.queue();
            let Some(key) = queue.take(now) else {
                return queue.next().unwrap_or(now + REST);
            };
            drop(queue);
            let reconciler = Arc::clone(&self.reconciler);
            jobs.spawn(async move {
                let result = reconciler.reconcile(&key).await;
                (key, result)
            });
        }
        now + REST
    }

    fn plan(
        &self,
        key: ObjectKey,
        result: Result<Again, ObjectError>,
        failures: &mut HashMap<ObjectKey, Backoff>,
    ) {
        let now = Instant::now();
        match result {
            Ok(Again::OnSignal) | Err(ObjectError::NotFound(_)) => {
                failures.remove(&key);
            }
            Ok(Again::After(wait)) => {
                failures.remove(&key);
                self.signals.at(key, now + wait);
            }
            Err(error) => {
                let backoff = failures
                    .entry(key.clone())
                    .or_insert_with(|| Backoff::new(RETRY_FIRST, RETRY_MAX));
                let wait = backoff.next_wait();
                if !matches!(error, ObjectError::Conflict(_)) {
                    let kind = self.reconciler.name();
                    tracing::warn!(kind, object = %key, %error, "reconcile failed");
                }
                self.signals.at(key, now + wait);
            }
        }
    }
}

#[cfg(test)]
mod tests;
