//! Duties of process 1 besides the agent's work.

use imaging::children;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

/// Threads for calls and downloads; decoding and writing have their own threads.
const WORKERS: usize = 2;
/// Maximum threads for blocking work: decoder, disk, checksum, name lookup, and some spare ones.
const BLOCKING: usize = 8;

/// Returns the agent's runtime. It is small, because glibc keeps a memory arena for every thread.
pub fn runtime() -> Result<Runtime, Error> {
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .enable_all()
        .build()
        .map_err(Error::io("start the runtime"))
}

/// Reaps orphans, which the kernel reparents to process 1.
pub(super) async fn reap() {
    let Ok(mut children) = signal(SignalKind::child()) else { return };
    while children.recv().await.is_some() {
        children::collect();
    }
}
