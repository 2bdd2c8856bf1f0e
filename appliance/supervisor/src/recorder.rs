//! Writes happenings down as core/v1 Events, in order, without ever holding up who tells them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api::core::{EVENT, Happening};
use apiserver::{Engine, WriteOptions};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::objects::id;

/// How many happenings may wait to be written; more are dropped and counted.
const QUEUE_MAX: usize = 1024;

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
            tracing::warn!(object = name, reason, message, "event");
        } else {
            tracing::info!(object = name, reason, message, "event");
        }
        if self.queue.try_send(happening).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Write until `shutdown`; what waits then is written first.
    pub async fn run(mut self, engine: Engine, shutdown: CancellationToken) {
        loop {
            let happening = tokio::select! {
                biased;
                happening = self.queue.recv() => happening,
                () = shutdown.cancelled() => None,
            };
            let Some(happening) = happening else { return };
            let event = happening.to_event(&stdx::random_hex(8));
            let namespace = &happening.namespace;
            let written =
                engine.create(&id(EVENT), namespace, event, WriteOptions::default()).await;
            if let Err(error) = written {
                tracing::warn!(%error, reason = happening.reason, "cannot write an event");
            }
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tracing::warn!(dropped, "events were dropped: too many at once");
            }
        }
    }
}
