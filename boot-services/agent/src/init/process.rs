//! Async runtime of the agent, and reaping of orphaned processes.

use imaging::children;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

/// Number of runtime threads, for calls and downloads. Decoding and writing use other threads.
const WORKERS: usize = 2;
/// Maximum number of threads for blocking work: decoder, disk, checksum, name lookup, and spare.
const BLOCKING: usize = 8;

/// Builds the async runtime. Few threads, because glibc keeps a memory arena for each thread.
pub fn runtime() -> Result<Runtime, Error> {
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .enable_all()
        .build()
        .map_err(Error::io("start the runtime"))
}

/// Reaps orphaned processes, which the kernel reparents to process 1. Never returns.
pub(super) async fn reap() {
    let Ok(mut children) = signal(SignalKind::child()) else { return };
    while children.recv().await.is_some() {
        children::collect();
    }
}
