//! A connection in the process of the test, whose work and clock the test has.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::core::SECRET;
use api::management_cluster::{MANAGEMENT_CLUSTER, MANAGEMENT_CLUSTERS, ManagementCluster};
use api::meta::ObjectKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capi::management::{Device, ManagementClusters, PairedCluster, StartedWork, Work};
use capi::pairing::{self, Identity};
use capi::remote::{Kubeconfig, RemoteObjects};
use jiff::{SignedDuration, Timestamp};
use objects::Objects;
use peers::{Cluster, ClusterConfig, Kubectl};
use serde_json::{Value, json};
use stdx::TestClock;
use stdx::testing::{until, wait_for};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{administrator, good, install};
use crate::remote_objects::relay::{Mode, Relay};

/// Shortest lifetime of a token that an API server issues.
const LIFETIME: Duration = Duration::from_secs(600);
/// Binding of the box's rights in the management cluster.
const RIGHTS: &str = "clusterrole/tinbox-system-controllers";

/// Work that remembers the changed objects, and counts what runs.
#[derive(Default)]
struct Remembered {
    changed: Arc<Mutex<BTreeSet<String>>>,
    starts: AtomicUsize,
    running: Arc<AtomicUsize>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Work for Remembered {
    fn start(&self, _: PairedCluster) -> StartedWork {
        self.starts.fetch_add(1, Ordering::SeqCst);
        self.running.fetch_add(1, Ordering::SeqCst);
        let (names, running) = (Arc::clone(&self.changed), Running(Arc::clone(&self.running)));
        StartedWork {
            changed: Arc::new(move |_, key, _| {
                names.lock().unwrap().insert(key.name);
            }),
            run: Box::pin(async move {
                let _running = running;
                std::future::pending().await
            }),
        }
    }
}

fn machine(name: &str) -> String {
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "TinkerbellMachine",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "bootOptions": { "bootMode": "netboot" } },
    });
    object.to_string()
}

/// A connection in this process: one API server is the box and its management cluster, so that the
/// test has the box's clock.
struct Connected {
    kubectl: Kubectl,
    relay: Relay,
    objects: Arc<RemoteObjects>,
    clock: TestClock,
    work: Arc<Remembered>,
    shutdown: CancellationToken,
    runtime: Runtime,
    cluster: Cluster,
}

/// Namespace and name of the ManagementCluster.
fn fleet() -> ObjectKey {
    ObjectKey::new("default", "fleet")
}

impl Connected {
    fn start() -> Self {
        let cluster = Cluster::start(&ClusterConfig::default()).unwrap();
        let kubectl = cluster.kubectl().unwrap();
        install(&kubectl);
        good(&kubectl, &["apply", "-f", "-"], MANAGEMENT_CLUSTERS);
        good(&kubectl, &["wait", "crds", "--all", "--for=condition=Established"], "");
        good(&kubectl, &["create", "-f", "-"], &machine("m1"));
        let runtime = Runtime::new().unwrap();
        let target = cluster.url().trim_start_matches("https://").to_owned();
        let relay = runtime.block_on(Relay::start(target));
        let admin = Kubeconfig::parse_context(&administrator(&cluster), Some("admin")).unwrap();
        let objects = runtime.block_on(async {
            let (identity, url) = (Identity::new("box", "fleet", None), relay.url());
            let created = pairing::create_identity(&admin, &identity, Some(&url), LIFETIME).await;
            let (objects, _events) = RemoteObjects::new(&admin).unwrap();
            for (kind, object) in pairing::box_objects(&fleet(), &created.unwrap(), None, None) {
                objects.create(kind, object).await.unwrap();
            }
            Arc::new(objects)
        });
        let (clock, work) = (TestClock::at(Timestamp::now()), Arc::new(Remembered::default()));
        let clusters = ManagementClusters {
            objects: Arc::clone(&objects) as _,
            clock: Arc::new(clock.clone()),
            device: Device { box_id: "b1".to_owned(), holder: "one".to_owned() },
            work: Arc::clone(&work) as _,
        };
        let shutdown = CancellationToken::new();
        runtime.spawn(clusters.run(shutdown.clone()));
        Self { kubectl, relay, objects, clock, work, shutdown, runtime, cluster }
    }

    fn stored(&self) -> ManagementCluster {
        self.stored_as("fleet")
    }

    fn stored_as(&self, name: &str) -> ManagementCluster {
        let key = ObjectKey::new("default", name);
        let object = self.runtime.block_on(self.objects.get(MANAGEMENT_CLUSTER, &key));
        serde_json::from_value(object.unwrap()).unwrap()
    }

    /// Pairs the cluster under another name, with rights in one namespace only.
    fn pair(&self, name: &str) {
        let admin = administrator(&self.cluster);
        let admin = Kubeconfig::parse_context(&admin, Some("admin")).unwrap();
        self.runtime.block_on(async {
            let (identity, url) = (Identity::new("box", name, Some("default")), self.relay.url());
            let created = pairing::create_identity(&admin, &identity, Some(&url), LIFETIME).await;
            let key = ObjectKey::new("default", name);
            let created = created.unwrap();
            for (kind, object) in pairing::box_objects(&key, &created, Some("default"), None) {
                self.objects.create(kind, object).await.unwrap();
            }
        });
    }

    /// Returns the kubeconfig in the Secret of the box.
    fn kubeconfig(&self) -> Value {
        let key = ObjectKey::new("default", pairing::secret_name("fleet"));
        let secret = self.runtime.block_on(self.objects.get(SECRET, &key)).unwrap();
        let text = STANDARD.decode(secret["data"]["value"].as_str().unwrap()).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn reaches(&self, reason: &str) {
        self.reaches_as("fleet", reason);
    }

    fn reaches_as(&self, name: &str, reason: &str) {
        until(&format!("{name}: the reason {reason}"), || {
            self.stored_as(name).status.connected().is_some_and(|it| it.reason == reason)
        });
    }

    /// Returns the names of the objects that changed since the last call.
    fn changed(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.work.changed.lock().unwrap())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[test]
fn a_connection_outlives_lost_rights_and_its_token() {
    let it = Connected::start();
    it.reaches("Connected");
    assert_eq!(it.changed(), BTreeSet::from(["m1".to_owned()]));

    // The rights vanish, as in `clusterctl upgrade apply`, and the connections break.
    let role = good(&it.kubectl, &["get", RIGHTS, "-o", "json"], "");
    good(&it.kubectl, &["delete", RIGHTS], "");
    it.relay.set(Mode::Closed);
    it.reaches("Unreachable");
    it.relay.set(Mode::Open);
    it.reaches("Forbidden");
    let message = it.stored().status.connected().unwrap().message.clone();
    assert!(message.contains("missing rights: get, list, watch of tinkerbell"), "{message}");
    assert_eq!(it.changed(), BTreeSet::new());
    good(&it.kubectl, &["create", "-f", "-"], &role);
    it.reaches("Connected");
    until("the list after the outage", || it.changed().contains("m1"));

    // Half of the token's lifetime is over.
    let (old, expires) = (it.kubeconfig(), it.stored().status.credential_expires);
    it.clock.advance(SignedDuration::try_from(LIFETIME / 2).unwrap());
    let new = wait_for("the new token", || Some(it.kubeconfig()).filter(|new| *new != old));
    until("its end in the status", || it.stored().status.credential_expires > expires);
    assert_eq!(new["clusters"], old["clusters"]);

    // The clock of the management cluster is wrong.
    let skew = || {
        let all = it.stored().status.conditions;
        all.into_iter().find(|it| it.kind == "ClockSkew").unwrap()
    };
    it.clock.advance(SignedDuration::from_hours(25));
    until("the difference of the clocks", || skew().message.contains("a day behind"));
    assert_eq!(skew().status, "True");
    assert_eq!(it.stored().status.connected().unwrap().status, "True");
    good(&it.kubectl, &["create", "-f", "-"], &machine("m2"));
    until("a machine after the renewal", || it.changed().contains("m2"));
    assert_eq!(it.work.starts.load(Ordering::SeqCst), 1, "a renewal restarts nothing");
}

#[test]
fn the_end_of_a_connection_ends_its_work_and_changes_no_machine() {
    let it = Connected::start();
    let running = || it.work.running.load(Ordering::SeqCst);
    let patch = |suspend: bool| {
        let patch = json!({ "spec": { "suspend": suspend } }).to_string();
        good(&it.kubectl, &["patch", "managementcluster/fleet", "--type=merge", "-p", &patch], "");
    };
    it.reaches("Connected");
    assert_eq!(running(), 1);
    patch(true);
    it.reaches("Suspended");
    assert_eq!(running(), 0);
    patch(false);
    it.reaches("Connected");
    good(&it.kubectl, &["delete", "managementcluster/fleet"], "");
    until("the end of the work", || running() == 0);
    let machine = ["get", "tinkerbellmachines/m1", "-o", "jsonpath={.metadata.generation}"];
    assert_eq!(good(&it.kubectl, &machine, ""), "1");
}

#[test]
fn a_cluster_is_known_by_its_id_and_not_by_a_name() {
    let it = Connected::start();
    it.reaches("Connected");
    let id = ["get", "namespace/kube-system", "-o", "jsonpath={.metadata.uid}"];
    let id = Some(good(&it.kubectl, &id, ""));
    assert_eq!(it.stored().status.cluster_uid, id);
    it.pair("second");
    it.reaches_as("second", "AlreadyPaired");
    let message = it.stored_as("second").status.connected().unwrap().message.clone();
    assert!(message.contains("the ManagementCluster default/fleet"), "{message}");
    assert_eq!(it.work.starts.load(Ordering::SeqCst), 1);
    // After the end of the first, the other has the cluster, and may read its ID.
    good(&it.kubectl, &["delete", "managementcluster/fleet"], "");
    it.reaches_as("second", "Connected");
    assert_eq!(it.stored_as("second").status.cluster_uid, id);
    assert_eq!(it.work.starts.load(Ordering::SeqCst), 2);

    // A kubeconfig that leads to another cluster, as far as the ManagementCluster knows.
    let patch = |part: &str, patch: &Value| {
        let patch = ["-p", &patch.to_string()].map(str::to_owned);
        let subject = ["patch", "managementcluster/second", "--type=merge", part];
        let all: Vec<&str> = subject.into_iter().filter(|it| !it.is_empty()).collect();
        let patch: Vec<&str> = patch.iter().map(String::as_str).collect();
        good(&it.kubectl, &[all, patch].concat(), "");
    };
    patch("", &json!({ "spec": { "suspend": true } }));
    it.reaches_as("second", "Suspended");
    patch("--subresource=status", &json!({ "status": { "clusterUID": "another" } }));
    patch("", &json!({ "spec": { "suspend": false } }));
    it.reaches_as("second", "ClusterChanged");
    assert_eq!(it.work.starts.load(Ordering::SeqCst), 2);
    assert_eq!(it.work.running.load(Ordering::SeqCst), 0);
}
