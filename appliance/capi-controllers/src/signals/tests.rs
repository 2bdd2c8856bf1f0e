//! Tests of the signals, with a controller that records the keys of its objects.

use std::sync::{Arc, Mutex};

use api::meta::ObjectKey;
use api::network::control_plane_endpoint::{ControlPlaneEndpointSpec, EndpointCluster};
use controllers::runtime::{Controller, Reconciled, Reconciler, Requeue, Signals};
use objects::fake::Memory;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{AllClusterApiSignals, ClusterApiSignals};

#[derive(Default)]
struct Recorder {
    keys: Mutex<Vec<ObjectKey>>,
    seen: CancellationToken,
}

impl Reconciler for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            self.keys.lock().unwrap().push(key.clone());
            self.seen.cancel();
            Ok(Requeue::OnSignal)
        })
    }
}

#[tokio::test]
async fn a_changed_endpoint_signals_the_cluster_of_its_management_cluster() {
    let recorder = Arc::new(Recorder::default());
    let controller = Controller::new(recorder.clone());
    let others = || Signals::default();
    let signals = ClusterApiSignals::new([others(), controller.signals(), others(), others()]);
    let all = AllClusterApiSignals::default();
    all.insert(None, Arc::default(), Arc::new(Memory::default()));
    all.insert(Some("c1"), Arc::new(signals), Arc::new(Memory::default()));
    let cluster_ref = EndpointCluster {
        cluster_uid: "c1".to_owned(),
        namespace: "default".to_owned(),
        name: "edge".to_owned(),
        deleted: false,
    };
    let spec = ControlPlaneEndpointSpec { cluster_ref, ..ControlPlaneEndpointSpec::default() };
    all.endpoint_changed(&json!({ "metadata": { "name": "10.77.0.200" }, "spec": spec }));
    controller.run(recorder.seen.clone()).await;
    assert_eq!(*recorder.keys.lock().unwrap(), [ObjectKey::new("default", "edge")]);
}

#[test]
fn only_changes_that_concern_machines_signal_them() {
    let signals = ClusterApiSignals::default();
    let key = ObjectKey::new("default", "edge");
    let mut cluster = json!({ "metadata": { "resourceVersion": "1" }, "spec": {} });
    let mut is_news = |path: &str, value: &str| {
        *cluster.pointer_mut(path).unwrap() = json!(value);
        signals.is_news_for_machines("Cluster", &key, &cluster)
    };
    assert!(is_news("/metadata/resourceVersion", "2"));
    assert!(!is_news("/metadata/resourceVersion", "3"));
    assert!(is_news("/spec", "paused"));
    cluster["status"] = json!({ "conditions": ["changed"], "phase": "Provisioned" });
    assert!(!signals.is_news_for_machines("Cluster", &key, &cluster));
    cluster["status"]["initialization"] = json!({ "infrastructureProvisioned": true });
    assert!(signals.is_news_for_machines("Cluster", &key, &cluster));
}
