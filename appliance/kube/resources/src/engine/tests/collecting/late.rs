//! Tests of an owner that is deleted before the collector has read its dependents: the initial read
//! goes kind by kind, while objects are written.

use serde_json::json;
use store::{Key, Watch};

use super::{Collector, HARDWARE, Propagation, SECRETS, bench, delete, owned, owner};
use crate::Engine;
use crate::engine::collector::Work;

async fn catch_up(engine: &Engine, collector: &mut Collector, changes: &mut Watch) {
    while changes.revision() < engine.revision() {
        collector.take_in(changes.next().await.unwrap());
    }
}

#[tokio::test]
async fn the_foreground_waits_for_a_dependent_not_yet_read() {
    let bench = bench().await;
    let root = bench.hardware("root", json!({})).await;
    let mut collector = Collector::new(bench.engine.clone(), Vec::new());
    let mut changes = collector.survey().await.unwrap();
    owned(&bench, SECRETS, "a", json!([owner(&root, true)])).await;
    delete(&bench, "root", Propagation::Foreground).await;
    let work = Work::Foreground(Key::new(HARDWARE, "default", "root"));
    collector.one(&work).await.unwrap();
    assert!(bench.get("root").await.is_ok(), "the collector does not know of `a`");
    catch_up(&bench.engine, &mut collector, &mut changes).await;
    collector.one(&work).await.unwrap();
    assert!(bench.get("root").await.is_ok(), "`a` blocks its end");
    let a = Work::Dependent(Key::new(SECRETS, "default", "a"));
    collector.one(&a).await.unwrap();
    catch_up(&bench.engine, &mut collector, &mut changes).await;
    collector.one(&work).await.unwrap();
    assert!(bench.get("root").await.is_err(), "`a` is gone");
}

#[tokio::test]
async fn an_orphan_not_yet_read_forgets_its_owner_first() {
    let bench = bench().await;
    let root = bench.hardware("root", json!({})).await;
    let mut collector = Collector::new(bench.engine.clone(), Vec::new());
    let mut changes = collector.survey().await.unwrap();
    owned(&bench, SECRETS, "a", json!([owner(&root, true)])).await;
    delete(&bench, "root", Propagation::Orphan).await;
    let work = Work::Orphaning(Key::new(HARDWARE, "default", "root"));
    collector.one(&work).await.unwrap();
    assert!(bench.get("root").await.is_ok(), "the collector does not know of `a`");
    catch_up(&bench.engine, &mut collector, &mut changes).await;
    collector.one(&work).await.unwrap();
    assert!(bench.get("root").await.is_err(), "`a` is an orphan now");
    let orphan = bench.engine.get(SECRETS, "default", "a").await.unwrap();
    assert!(orphan["metadata"].get("ownerReferences").is_none(), "{orphan}");
}
