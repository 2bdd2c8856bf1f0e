//! Writes happenings down as core/v1 Events, in order, without ever holding up who tells them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api::core::{EVENT, Happening};
use apiserver::{Engine, WriteOptions};
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::objects::id;

/// How many happenings may wait to be written; more are dropped and counted.
const QUEUE_MAX: usize = 1024;

/// How many are written at once.
const BATCH_MAX: usize = 64;

/// Takes happenings.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Happening>,
    dropped: Arc<AtomicU64>,
}

/// Writes what a [`Recorder`] takes.
pub struct Writer {
    queue: mpsc::Receiver<Happening>,
    dropped: Arc<AtomicU64>,
}

/// A recorder and its writer.
pub fn recorder() -> (Recorder, Writer) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let dropped = Arc::new(AtomicU64::new(0));
    let recorder = Recorder { queue: sender, dropped: Arc::clone(&dropped) };
    (recorder, Writer { queue: receiver, dropped })
}

impl Recorder {
    /// Remember that something happened. Never waits.
    pub fn record(&self, happening: Happening) {
        let Happening { reason, message, name, .. } = &happening;
        if happening.warning {
            tracing::warn!(object = name, reason, "{message}");
        } else {
            tracing::info!(object = name, reason, "{message}");
        }
        if self.queue.try_send(happening).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Write until `shutdown`; what waits then is written first.
    pub async fn run(mut self, engine: Engine, shutdown: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let count = tokio::select! {
                biased;
                count = self.queue.recv_many(&mut batch, BATCH_MAX) => count,
                () = shutdown.cancelled() => 0,
            };
            if count == 0 {
                return;
            }
            // Begun in order and at once, so that the store makes them durable together.
            join_all(batch.drain(..).map(|happening| write(&engine, happening))).await;
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tracing::warn!(dropped, "events were dropped: too many at once");
            }
        }
    }
}

async fn write(engine: &Engine, happening: Happening) {
    let (kind, event) = (id(EVENT), happening.to_event(&stdx::random_hex(8)));
    let created = engine.create(&kind, &happening.namespace, event, WriteOptions::default());
    if let Err(error) = created.await {
        tracing::warn!(%error, reason = happening.reason, "cannot write an event");
    }
}
