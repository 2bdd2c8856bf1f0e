//! Tests of the engine while the disk is nearly full.

use std::sync::Arc;

use serde_json::{Value, json};
use store::Options;
use store::fake::FreeSpace;

use super::{Bench, HARDWARE, TEMPLATES, bench_with};
use crate::engine::{DeleteOptions, Patch, WriteOptions};
use crate::status_error::Reason;

fn client() -> WriteOptions {
    WriteOptions { manager: Some("kubectl".to_owned()), ..WriteOptions::default() }
}

fn hardware() -> Value {
    json!({ "metadata": { "name": "nuc1" } })
}

async fn bench() -> (Bench, Arc<FreeSpace>) {
    let free = Arc::new(FreeSpace::new(u64::MAX));
    let volume = Arc::clone(&free) as _;
    (bench_with(Options { volume, ..Options::default() }).await, free)
}

#[tokio::test]
async fn nothing_is_created_on_a_disk_that_is_nearly_full() {
    let (bench, free) = bench().await;
    free.set(1 << 20);
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
    free.set(1 << 20);
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

    free.set(u64::MAX);
    bench.engine.create(HARDWARE, "default", hardware(), client()).await.unwrap();
}
