//! Recorder that stores events of objects as core/v1 Events, in order. Callers never wait. The rate
//! of writes is limited, to protect the disk.

mod correlator;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::core::{EVENT, ObjectEvent};
use futures_util::future::join_all;
use resources::{Engine, Patch, Reason, WriteOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::objects::id;
pub use correlator::Subject;
use correlator::{Correlator, Recount};

/// Maximum number of Events in the queue. Further Events are dropped and counted.
const QUEUE_MAX: usize = 1024;

/// Maximum number of Events written at once.
const BATCH_MAX: usize = 64;

/// Handle to record events; clones share one queue.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
    correlator: Arc<Mutex<Correlator>>,
}

/// Task that writes the Events of a [`Recorder`].
pub struct Writer {
    queue: mpsc::Receiver<Event>,
    dropped: Arc<AtomicU64>,
    correlator: Arc<Mutex<Correlator>>,
}

/// Event for the writer to create.
struct Event {
    namespace: String,
    object: Value,
}

/// Creates a recorder and its writer.
pub fn recorder() -> (Recorder, Writer) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let (dropped, correlator) = <(Arc<AtomicU64>, Arc<Mutex<Correlator>>)>::default();
    let recorder = Recorder {
        queue: sender,
        dropped: Arc::clone(&dropped),
        correlator: Arc::clone(&correlator),
    };
    (recorder, Writer { queue: receiver, dropped, correlator })
}

fn lock(correlator: &Mutex<Correlator>) -> MutexGuard<'_, Correlator> {
    correlator.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Records an event without waiting, within the rate limits of its object.
    pub fn record(&self, object_event: ObjectEvent) {
        let subject = Subject::Object {
            kind: object_event.about.kind,
            namespace: object_event.namespace.clone(),
            name: object_event.name.clone(),
        };
        self.record_about(&subject, object_event);
    }

    /// Records an event without waiting, within the rate limits of `subject`.
    pub fn record_about(&self, subject: &Subject, mut object_event: ObjectEvent) {
        let (now, suffix) = (Instant::now().into_std(), || stdx::random_hex(8));
        let event = lock(&self.correlator).note(subject, &object_event, now, suffix);
        let Some(event) = event else {
            let ObjectEvent { reason, message, name, .. } = &object_event;
            return tracing::debug!(object = name, reason, "again: {message}");
        };
        object_event.message = event.message;
        let ObjectEvent { reason, message, name, .. } = &object_event;
        if object_event.warning {
            tracing::warn!(object = name, reason, "{message}");
        } else {
            tracing::info!(object = name, reason, "{message}");
        }
        let mut object = object_event.to_event(&event.suffix);
        object["count"] = event.count.into();
        let event = Event { namespace: object_event.namespace, object };
        if self.queue.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets the next event about the subject create a new Event, even if the event is a repetition.
    /// Reasons that `keep` selects are excepted.
    pub fn begin_anew(&self, subject: &Subject, keep: impl Fn(&str) -> bool) {
        lock(&self.correlator).begin_anew(subject, keep);
    }
}

impl Writer {
    /// Writes Events until `shutdown`, then writes the rest of the queue and all counts.
    pub async fn run(mut self, engine: Engine, shutdown: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let due = lock(&self.correlator).next_due().map(Instant::from_std);
            let count = tokio::select! {
                biased;
                count = self.queue.recv_many(&mut batch, BATCH_MAX) => count,
                () = shutdown.cancelled() => 0,
                () = sleep_until(due) => {
                    let due = lock(&self.correlator).due(Instant::now().into_std());
                    join_all(due.into_iter().map(|recount| store(&engine, recount))).await;
                    continue;
                }
            };
            // The writes start in order and run together, so that the store syncs them together.
            join_all(batch.drain(..).map(|event| create(&engine, event))).await;
            if count == 0 {
                let last = lock(&self.correlator).last();
                join_all(last.into_iter().map(|recount| store(&engine, recount))).await;
                return;
            }
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tracing::warn!(dropped, "events were dropped: too many at once");
            }
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn create(engine: &Engine, Event { namespace, object }: Event) {
    let (kind, reason) = (id(EVENT), object["reason"].clone());
    let created = engine.create(&kind, &namespace, object, WriteOptions::default());
    if let Err(error) = created.await {
        tracing::warn!(%error, %reason, "cannot write an event");
    }
}

async fn store(engine: &Engine, recount: Recount) {
    let Recount { namespace, name, count, last } = recount;
    let last = last.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let stored = async {
        let patch = Patch::merge(json!({ "count": count, "lastTimestamp": last }))?;
        engine.patch(&id(EVENT), &namespace, &name, patch, WriteOptions::default()).await
    };
    match stored.await {
        Err(error) if error.reason != Reason::NotFound => {
            tracing::warn!(%error, event = name, "cannot count an event");
        }
        _ => {}
    }
}
