//! Behavior while the disk is nearly full.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use store::{Options, Volume};

use super::{Bench, HARDWARE, TEMPLATES, bench_with};
use crate::engine::{DeleteOptions, Patch, WriteOptions};
use crate::status_error::Reason;

/// A disk with that many free bytes.
struct Free(AtomicU64);

impl Volume for Free {
    fn free(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

fn client() -> WriteOptions {
    WriteOptions { manager: Some("kubectl".to_owned()), ..WriteOptions::default() }
}

fn hardware() -> Value {
    json!({ "metadata": { "name": "nuc1" } })
}

async fn bench() -> (Bench, Arc<Free>) {
    let free = Arc::new(Free(AtomicU64::new(u64::MAX)));
    let volume = Arc::clone(&free) as _;
    (bench_with(Options { volume, ..Options::default() }).await, free)
}

#[tokio::test]
async fn nothing_is_created_on_a_disk_that_is_nearly_full() {
    let (bench, free) = bench().await;
    free.0.store(1 << 20, Ordering::Relaxed);
    let template = json!({ "metadata": { "name": "big" }, "spec": { "data": "x" } });
    let refused = bench.engine.create(TEMPLATES, "default", template.clone(), client()).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.reason, Reason::InsufficientStorage);
    assert_eq!(refused.reason.code(), 507);
    assert!(
        refused.message.starts_with(
            "cannot store templates.tinkerbell.org \"big\": the box's disk is nearly full ("
        ),
        "{}",
        refused.message
    );
    let own = bench.engine.create(TEMPLATES, "default", template, WriteOptions::default()).await;
    own.expect("the box's own writes go on");
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_can_be_emptied() {
    let (bench, free) = bench().await;
    bench.engine.create(HARDWARE, "default", hardware(), client()).await.unwrap();
    free.0.store(1 << 20, Ordering::Relaxed);
    let patch = |size: usize| {
        Patch::merge(json!({ "metadata": { "annotations": { "note": "x".repeat(size) } } }))
    };
    let small = bench.engine.patch(HARDWARE, "default", "nuc1", patch(1).unwrap(), client()).await;
    small.expect("a little is taken");
    let large = patch(100_000).unwrap();
    let large = bench.engine.patch(HARDWARE, "default", "nuc1", large, client()).await;
    assert_eq!(large.unwrap_err().reason, Reason::InsufficientStorage);
    let gone = bench.engine.delete(HARDWARE, "default", "nuc1", DeleteOptions::default()).await;
    gone.expect("deleting goes on");

    free.0.store(u64::MAX, Ordering::Relaxed);
    bench.engine.create(HARDWARE, "default", hardware(), client()).await.unwrap();
}
