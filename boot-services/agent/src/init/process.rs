//! What being the first process asks for besides work.

use imaging::children;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

/// Threads for calls and downloads; decoding and writing have their own.
const WORKERS: usize = 2;
/// Threads for blocking work at once: decoder, disk, sum, name look-up, and some air.
const BLOCKING: usize = 8;

/// The agent's runtime, small: glibc keeps an arena of memory for every thread.
pub fn runtime() -> Result<Runtime, Error> {
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .enable_all()
        .build()
        .map_err(Error::io("start the runtime"))
}

/// Collect orphans, which the kernel hands to process 1.
pub(super) async fn reap() {
    let Ok(mut children) = signal(SignalKind::child()) else { return };
    while children.recv().await.is_some() {
        children::collect();
    }
}
