//! Tests of the store: against a model, on a disk that loses power, and with slow and fast readers.

mod aside;
mod beyond;
mod disk;
mod format;
mod free_space;
mod frozen;
mod group;
mod model;
mod open;
mod power;
mod seal;
mod snapshot;
mod walk;
mod watch;

use std::sync::Arc;

use stdx::testing::PATIENCE;

use crate::transaction::Totals;
use crate::{Change, Error, Key, Options, Store, Txn, Watch};

use disk::Disk;

const RESOURCE: &str = "tinkerbell.org/hardware";

fn key(namespace: &str, name: &str) -> Key {
    Key::new(RESOURCE, namespace, name)
}

fn options() -> Options {
    Options::default()
}

/// Opens a store on `disk`, as [`Store::open`] does on a file.
fn start(disk: &Disk, options: Options) -> Result<Store, Error> {
    let path = std::path::Path::new("a disk in memory");
    let db = crate::file::open::database(path, disk.clone())?;
    let totals: Totals = crate::file::open::prepare(path, &db, &options.vault())?;
    Store::start(path, db, totals, options)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("in time") })
}

/// Runs a write whose closure returns no error of its own.
async fn write<T: Send + 'static>(
    store: &Store,
    f: impl FnOnce(&mut Txn<'_>) -> T + Send + 'static,
) -> Result<T, Error> {
    let outcome = store.write(|txn| Ok::<T, std::convert::Infallible>(f(txn))).await?;
    Ok(outcome.unwrap_or_else(|never| match never {}))
}

/// Returns the next `count` changes; fails if a change does not come in time.
async fn take(watch: &mut Watch, count: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    for _ in 0..count {
        let next = tokio::time::timeout(PATIENCE, watch.next()).await;
        changes.push(next.expect("a change in time").expect("no error"));
    }
    changes
}

fn value(text: &str) -> Arc<[u8]> {
    Arc::from(text.as_bytes())
}
