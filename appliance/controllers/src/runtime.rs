//! Runs a reconciler: on signals, on a tick, never twice at once for one object, many at once for
//! many. Upstream runs one at a time, so that one slow BMC holds up the site (rufio#311).

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;
use stdx::Backoff;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ObjectError;

/// How many objects of one kind are reconciled at once.
const AT_ONCE_MAX: usize = 32;
/// The first wait after an error.
const RETRY_FIRST: Duration = Duration::from_millis(200);
/// The longest wait after errors.
const RETRY_MAX: Duration = Duration::from_secs(15);

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
    /// Look at the object and take the steps that are due.
    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a>;
}

#[derive(Default)]
struct Schedule {
    due: Mutex<HashMap<ObjectKey, Instant>>,
    wake: Notify,
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
        let mut due = self.0.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.entry(key).and_modify(|it| *it = (*it).min(when)).or_insert(when);
        drop(due);
        self.0.wake.notify_one();
    }

    /// Takes up to `room` keys that are due and idle; also tells when the next idle key is due.
    fn take(&self, idle: impl Fn(&ObjectKey) -> bool, room: usize) -> (Vec<ObjectKey>, Instant) {
        let now = Instant::now();
        let mut due = self.0.due.lock().unwrap_or_else(PoisonError::into_inner);
        let ready: Vec<ObjectKey> = due
            .iter()
            .filter(|(key, when)| **when <= now && idle(key))
            .map(|(key, _)| key.clone())
            .take(room)
            .collect();
        for key in &ready {
            due.remove(key);
        }
        let far = now + Duration::from_secs(3600);
        let next = due
            .iter()
            .filter(|(key, when)| idle(key) && !ready.contains(key) && **when > now)
            .map(|(_, when)| *when)
            .min();
        (ready, next.unwrap_or(far))
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
        let mut running: HashSet<ObjectKey> = HashSet::new();
        let mut failures: HashMap<ObjectKey, Backoff> = HashMap::new();
        let mut jobs: JoinSet<(ObjectKey, Result<Again, ObjectError>)> = JoinSet::new();
        loop {
            let room = AT_ONCE_MAX.saturating_sub(running.len());
            let (ready, next) = self.signals.take(|key| !running.contains(key), room);
            for key in ready {
                running.insert(key.clone());
                let reconciler = Arc::clone(&self.reconciler);
                jobs.spawn(async move {
                    let result = reconciler.reconcile(&key).await;
                    (key, result)
                });
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.signals.0.wake.notified() => {}
                () = tokio::time::sleep_until(next) => {}
                Some(ended) = jobs.join_next() => match ended {
                    Ok((key, result)) => {
                        running.remove(&key);
                        self.plan(key, result, &mut failures);
                    }
                    // A bug must not be hidden behind a controller that quietly stands still.
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
            }
        }
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
