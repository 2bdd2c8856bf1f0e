//! Tests that writes of heavy objects do not delay other writes for long.

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Map, Value, json};

use super::{Bench, HARDWARE, bench, reason};
use crate::engine::write::weight::{MAX_ITEMS, MAX_OWNED_VALUES, MAX_VALUES};
use crate::engine::{Configuration, Patch, WriteOptions};
use crate::status_error::Reason;

const CONFIG_MAPS: &str = "/configmaps";
/// Number of heavy objects that are applied concurrently.
const HEAVY: usize = 6;

fn disks(count: usize) -> Value {
    json!({ "disks": vec![json!({ "device": "/dev/sda" }); count] })
}

impl Bench {
    async fn apply_heavy(&self, name: String) -> bool {
        let data: Map<String, Value> =
            (0..12_000).map(|number| (format!("k{number}"), json!("v"))).collect();
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data,
        });
        let config = Configuration { object, force: false, uncreatable: None };
        let options = WriteOptions { manager: Some("heavy".to_owned()), ..WriteOptions::default() };
        self.engine.apply(CONFIG_MAPS, "default", &name, config, options).await.unwrap();
        true
    }

    async fn create_light(&self) -> bool {
        self.hardware("light", json!({})).await;
        false
    }
}

#[tokio::test]
async fn heavy_applies_let_other_writes_go_between() {
    let bench = bench().await;
    let applies = (0..HEAVY).map(|number| bench.apply_heavy(format!("h{number}")).boxed_local());
    let mut writes: FuturesUnordered<_> = applies.collect();
    // All heavy writes have started before the light write starts.
    assert!(writes.next().now_or_never().flatten().is_none());
    writes.push(bench.create_light().boxed_local());
    let order: Vec<bool> = writes.collect().await;
    let before = order.iter().take_while(|is_heavy| **is_heavy).count();
    assert!(before <= 2, "{before} of {HEAVY} heavy writes came before a light one");
}

#[tokio::test]
async fn a_list_longer_than_that_of_any_machine_is_refused_before_it_is_merged() {
    let bench = bench().await;
    let object = |count| json!({ "metadata": { "name": "a" }, "spec": disks(count) });
    assert_eq!(reason(bench.create(HARDWARE, object(MAX_ITEMS + 1)).await), Reason::Invalid);
    bench.create(HARDWARE, object(2)).await.unwrap();
    let patched = bench.merge("a", json!({ "spec": disks(MAX_ITEMS + 1) })).await;
    let error = patched.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    assert_eq!(error.details.causes[0].field, "spec.disks");
    let config = Configuration {
        object: json!({
            "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
            "metadata": { "name": "a" }, "spec": disks(MAX_ITEMS + 1),
        }),
        force: true,
        uncreatable: None,
    };
    let applied = bench.engine.apply(HARDWARE, "default", "a", config, WriteOptions::default());
    assert_eq!(reason(applied.await), Reason::Invalid);
    assert_eq!(bench.get("a").await.unwrap()["spec"], disks(2));
}

#[tokio::test]
async fn an_object_of_too_many_values_is_refused_before_it_is_merged() {
    let bench = bench().await;
    let config = |count: usize| {
        let data: Map<String, Value> =
            (0..count).map(|number| (number.to_string(), json!("v"))).collect();
        Configuration {
            object: json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data,
            }),
            force: false,
            uncreatable: None,
        }
    };
    let apply = |count| {
        bench.engine.apply(CONFIG_MAPS, "default", "a", config(count), WriteOptions::default())
    };
    assert_eq!(reason(apply(MAX_VALUES).await), Reason::RequestEntityTooLarge);
    apply(2).await.unwrap();
    assert_eq!(reason(apply(MAX_VALUES).await), Reason::RequestEntityTooLarge);
}

#[tokio::test]
async fn the_owners_of_an_object_are_no_more_than_it_can_have() {
    let bench = bench().await;
    let data: Map<String, Value> =
        (0..MAX_VALUES / 2).map(|number| (number.to_string(), json!("v"))).collect();
    let apply = async |manager: usize| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data,
        });
        let config = Configuration { object, force: true, uncreatable: None };
        let manager = Some(format!("m{manager}"));
        let options = WriteOptions { manager, ..WriteOptions::default() };
        bench.engine.apply(CONFIG_MAPS, "default", "a", config, options).await
    };
    let most = MAX_OWNED_VALUES / (MAX_VALUES / 2) - 2;
    for manager in 0..most {
        apply(manager).await.unwrap();
    }
    apply(most - 1).await.expect("who owns them already may apply again");
    let mut refused = None;
    for manager in most..most + 3 {
        refused = apply(manager).await.err();
    }
    assert_eq!(refused.map(|error| error.reason), Some(Reason::RequestEntityTooLarge));
    let patch = Patch::merge(json!({ "data": { "0": null } })).unwrap();
    let options = WriteOptions { manager: Some("m0".to_owned()), ..WriteOptions::default() };
    bench.engine.patch(CONFIG_MAPS, "default", "a", patch, options).await.expect("it may shrink");
}

#[tokio::test]
async fn what_was_stored_with_a_longer_list_can_still_be_changed() {
    let bench = bench().await;
    let key = store::Key::new(HARDWARE, "default", "old");
    let object = json!({
        "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
        "metadata": { "name": "old", "namespace": "default", "uid": "1" },
        "spec": disks(MAX_ITEMS + 1),
    });
    let bytes = serde_json::to_vec(&object).unwrap();
    let written = bench.engine.inner.store.write(move |txn| {
        txn.put(key, bytes);
        Ok::<_, ()>(())
    });
    written.await.unwrap().unwrap();
    let patch = Patch::merge(json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    let options = WriteOptions::default();
    let patched = bench.engine.patch(HARDWARE, "default", "old", patch, options).await.unwrap();
    assert_eq!(patched["metadata"]["labels"]["a"], "b");
}
