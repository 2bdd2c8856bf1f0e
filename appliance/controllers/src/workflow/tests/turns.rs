use std::sync::Arc;

use api::bmc::JOB;
use api::meta::ObjectKey;
use api::tinkerbell::WORKFLOW;
use serde_json::{Value, json};

use super::{World, netboot};
use crate::runtime::Reconciler as _;
use objects::Objects as _;

#[tokio::test]
async fn two_workflows_of_one_machine_never_begin_both() {
    let world = World::new(netboot());
    let mut earlier = world.workflow();
    earlier["metadata"] = json!({ "name": "earlier", "namespace": "default" });
    let reconciler = Arc::new(world.reconciler());
    while world.state() != "PREPARING" {
        reconciler.reconcile(&world.key).await.unwrap();
    }
    let gated = world.memory.names(JOB);
    world.memory.put(WORKFLOW, earlier);

    // The later Workflow is observed before the earlier one is rendered, and its write is slow.
    "wf".clone_into(&mut world.memory.gated.lock().unwrap());
    let closed = world.memory.gate.lock().await;
    let spawn = |key: ObjectKey, times: usize| {
        let reconciler = Arc::clone(&reconciler);
        tokio::spawn(async move {
            for _ in 0..times {
                reconciler.reconcile(&key).await.unwrap();
            }
        })
    };
    let later = spawn(world.key.clone(), 5);
    tokio::task::yield_now().await;
    let earlier = spawn(ObjectKey::new("default", "earlier"), 5);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    drop(closed);
    later.await.unwrap();
    earlier.await.unwrap();
    assert_eq!(gated, Vec::<String>::new());
    assert_eq!(world.memory.names(JOB).len(), 1, "{:?}", world.memory.names(JOB));
    let key = ObjectKey::new("default", "earlier");
    let earlier: Value = world.memory.get(WORKFLOW, &key).await.unwrap();
    let conditions = earlier["status"]["conditions"].as_array().unwrap();
    let waiting = conditions.iter().find(|it| it["type"] == "Waiting");
    assert_eq!(waiting.unwrap()["message"], "queued behind wf", "{conditions:?}");
}
