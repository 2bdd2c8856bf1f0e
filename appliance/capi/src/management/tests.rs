use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::core::SECRET;
use api::management_cluster::{MANAGEMENT_CLUSTER, ManagementCluster};
use api::meta::ObjectKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::Objects;
use objects::fake::Memory;
use serde_json::{Value, json};
use stdx::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

use super::{CLUSTERS_MAX, Device, ManagementClusters, PairedCluster, StartedWork, Work};

/// Work that counts its starts.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Work for Counted {
    fn start(&self, _: PairedCluster) -> StartedWork {
        self.0.fetch_add(1, Ordering::SeqCst);
        StartedWork { changed: Arc::new(|_, _, _| {}), run: Box::pin(std::future::pending()) }
    }
}

struct World {
    memory: Arc<Memory>,
    work: Arc<Counted>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl World {
    fn start() -> Self {
        let (memory, work) = (Arc::new(Memory::default()), Arc::new(Counted::default()));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let objects: Arc<dyn Objects> = Arc::clone(&memory) as _;
        let device = Device { box_id: "b1".to_owned(), holder: "one".to_owned() };
        let clusters = ManagementClusters { objects, clock, device, work: Arc::clone(&work) as _ };
        let stop = CancellationToken::new();
        let task = tokio::spawn(clusters.run(stop.clone()));
        Self { memory, work, stop, task }
    }

    fn put(&self, name: &str, spec: &Value) {
        self.memory.put(
            MANAGEMENT_CLUSTER,
            json!({
                "apiVersion": MANAGEMENT_CLUSTER.api_version(),
                "kind": MANAGEMENT_CLUSTER.kind,
                "metadata": { "name": name, "namespace": "default", "uid": name },
                "spec": spec,
            }),
        );
    }

    fn put_kubeconfig(&self, text: &str) {
        self.memory.put(
            SECRET,
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "name": "a-kubeconfig", "namespace": "default" },
                "data": { "value": STANDARD.encode(text) },
            }),
        );
    }

    /// Waits until the connection has this reason. Time is virtual.
    async fn reason(&self, name: &str, reason: &str) {
        for _ in 0..60 {
            let object = self.memory.peek(MANAGEMENT_CLUSTER, name).unwrap();
            let cluster: ManagementCluster = serde_json::from_value(object).unwrap();
            if cluster.status.connected().is_some_and(|it| it.reason == reason) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("{name}: no {reason} in a minute");
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        assert_eq!(self.work.0.load(Ordering::SeqCst), 0);
    }
}

fn spec() -> Value {
    json!({ "kubeconfigSecretRef": { "name": "a-kubeconfig" } })
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_secret_or_the_spec_restarts_the_connection() {
    let world = World::start();
    world.put("a", &spec());
    world.reason("a", "KubeconfigMissing").await;
    world.put_kubeconfig("nothing");
    world.reason("a", "KubeconfigInvalid").await;
    let mut suspended = spec();
    suspended["suspend"] = true.into();
    world.put("a", &suspended);
    world.reason("a", "Suspended").await;
    world.put("a", &spec());
    world.reason("a", "KubeconfigInvalid").await;
    // An unpaired cluster has no connection, and a new one of its name has.
    world.memory.delete(MANAGEMENT_CLUSTER, &ObjectKey::new("default", "a")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.put("a", &spec());
    world.reason("a", "KubeconfigInvalid").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_is_not_written_without_a_change() {
    let world = World::start();
    world.put("a", &spec());
    world.reason("a", "KubeconfigMissing").await;
    let before = world.memory.peek(MANAGEMENT_CLUSTER, "a").unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.memory.peek(MANAGEMENT_CLUSTER, "a").unwrap(), before);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_box_has_a_limited_number_of_connections() {
    let world = World::start();
    let name = |number: usize| format!("c{number:02}");
    for number in 0..=CLUSTERS_MAX {
        world.put(&name(number), &spec());
    }
    world.reason(&name(0), "KubeconfigMissing").await;
    world.reason(&name(CLUSTERS_MAX), "TooManyClusters").await;
    world.memory.delete(MANAGEMENT_CLUSTER, &ObjectKey::new("default", name(0))).await.unwrap();
    world.reason(&name(CLUSTERS_MAX), "KubeconfigMissing").await;
    world.stop().await;
}
