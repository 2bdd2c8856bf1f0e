//! Runtime that calls reconcilers on signals and at due times. An object is never reconciled twice
//! at once. Many objects are reconciled in parallel, the longest waiting first. Upstream reconciles
//! one object at a time, so one slow BMC delays all others (rufio#311).

mod outage_log;
mod queue;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;
use stdx::{Backoff, Hint as _};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::outage_log::OutageLog;
use self::queue::Queue;
use objects::ObjectError;

/// Default maximum number of objects of one kind that are reconciled in parallel.
const AT_ONCE_MAX: usize = 32;
/// Maximum number of parallel reconciles that mostly wait for a BMC: more than the BMCs of two
/// racks, which all time out when the management network fails.
pub const BMCS_AT_ONCE_MAX: usize = 512;
/// Wait after the first error of an object.
const RETRY_FIRST: Duration = Duration::from_millis(200);
/// Maximum wait after repeated errors.
const RETRY_MAX: Duration = Duration::from_secs(15);

/// Maximum sleep of a controller without work.
const REST: Duration = Duration::from_secs(3600);

/// Time at which a reconciler must run again for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// Run on the next signal only.
    OnSignal,
    /// Run after this time, or earlier on a signal.
    After(Duration),
}

/// Future that [`Reconciler::reconcile`] returns.
pub type Reconciled<'a> = Pin<Box<dyn Future<Output = Result<Requeue, ObjectError>> + Send + 'a>>;

/// Reconciler of one kind: changes an object toward its desired state.
pub trait Reconciler: Send + Sync + 'static {
    /// Returns the kind of the objects, for log messages.
    fn name(&self) -> &'static str;
    /// Returns the maximum number of parallel reconciles; a reconcile that waits for I/O counts.
    fn at_once_max(&self) -> usize {
        AT_ONCE_MAX
    }
    /// Reads the object and executes the steps that are due.
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

/// Handle to signal a controller; clones signal the same controller.
#[derive(Clone, Default)]
pub struct Signals(Arc<Schedule>);

impl Signals {
    /// Schedules a reconcile of an object now.
    pub fn signal(&self, key: ObjectKey) {
        self.at(key, Instant::now());
    }

    fn at(&self, key: ObjectKey, when: Instant) {
        self.0.queue().put(key, when);
        self.0.wake.notify_one();
    }
}

/// Reconciler of one kind with its schedule.
pub struct Controller {
    reconciler: Arc<dyn Reconciler>,
    signals: Signals,
}

impl Controller {
    /// Creates a controller without scheduled objects.
    pub fn new(reconciler: Arc<dyn Reconciler>) -> Self {
        Self { reconciler, signals: Signals::default() }
    }

    /// Returns a handle to signal the controller.
    pub fn signals(&self) -> Signals {
        self.signals.clone()
    }

    /// Reconciles until `shutdown`, which aborts running reconciles; reconcilers tolerate an abort.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut failures: HashMap<ObjectKey, Backoff> = HashMap::new();
        let mut outages = OutageLog::default();
        let mut jobs: JoinSet<(ObjectKey, Result<Requeue, ObjectError>)> = JoinSet::new();
        loop {
            let next = self.begin(&mut jobs);
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.signals.0.wake.notified() => {}
                () = tokio::time::sleep_until(next) => {}
                Some(ended) = jobs.join_next() => match ended {
                    Ok((key, result)) => {
                        self.signals.0.queue().end(&key);
                        self.report(&key, &result, &mut outages);
                        self.plan(key, result, &mut failures);
                    }
                    // A panic is passed on, because a controller that silently stops would hide the
                    // bug.
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
            }
        }
    }

    /// Starts all due reconciles within the limit. Returns the time at which the next object is
    /// due.
    fn begin(&self, jobs: &mut JoinSet<(ObjectKey, Result<Requeue, ObjectError>)>) -> Instant {
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

    /// Logs the error of a reconcile, and of an outage only the first.
    fn report(
        &self,
        key: &ObjectKey,
        result: &Result<Requeue, ObjectError>,
        outages: &mut OutageLog,
    ) {
        let kind = self.reconciler.name();
        match result {
            Ok(_) | Err(ObjectError::NotFound(_) | ObjectError::Conflict(_)) => {}
            Err(error @ ObjectError::Unavailable { .. }) => match outages.count(Instant::now()) {
                Some(unreported) => {
                    let hint = error.hint();
                    tracing::warn!(kind, object = %key, %error, hint, unreported, "no access");
                }
                None => tracing::debug!(kind, object = %key, %error, "no access"),
            },
            Err(error) => tracing::warn!(kind, object = %key, %error, "reconcile failed"),
        }
    }

    fn plan(
        &self,
        key: ObjectKey,
        result: Result<Requeue, ObjectError>,
        failures: &mut HashMap<ObjectKey, Backoff>,
    ) {
        let now = Instant::now();
        match result {
            Ok(Requeue::OnSignal) | Err(ObjectError::NotFound(_)) => {
                failures.remove(&key);
            }
            Ok(Requeue::After(wait)) => {
                failures.remove(&key);
                self.signals.at(key, now + wait);
            }
            Err(_) => {
                let backoff = failures
                    .entry(key.clone())
                    .or_insert_with(|| Backoff::new(RETRY_FIRST, RETRY_MAX));
                self.signals.at(key, now + backoff.next_wait());
            }
        }
    }
}

#[cfg(test)]
mod tests;
