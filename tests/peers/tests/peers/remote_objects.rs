//! Client of a management cluster against a real kube-apiserver, with the definitions and rights
//! that the box's own provider release installs.

pub mod relay;

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};

use api::core::{CLUSTER_ROLE_BINDING, ObjectEvent, SECRET};
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::HARDWARE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capi::Repository;
use capi::remote::{Kubeconfig, RemoteObjects, Scope, WatchState, WatchedObjects, Watcher};
use objects::{ObjectError, Objects as _};
use peers::{Cluster, ClusterConfig, Kubectl};
use serde_json::{Value, json};
use stdx::testing::{until, wait_for};
use stdx::{Hint as _, SystemClock};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use relay::{Mode, Relay};

const MACHINE: Resource = Resource {
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta1",
    kind: "TinkerbellMachine",
    plural: "tinkerbellmachines",
};
/// Namespace of the box's ServiceAccount.
const PAIRING: &str = "tinbox-pairing";
/// Binding of the box's rights.
const BINDING: &str = "clusterrolebinding/tinbox-pairing-box";
/// More machines than one page of a list has.
const MANY: usize = 55;

/// A management cluster with the provider, and a client as the box has one.
struct Management {
    cluster: Cluster,
    kubectl: Kubectl,
    relay: Relay,
    objects: RemoteObjects,
    shutdown: CancellationToken,
    // Dropped last: it runs the tasks of the client and the relay.
    runtime: Runtime,
}

impl Management {
    fn start() -> Self {
        let cluster = Cluster::start(&ClusterConfig::default()).unwrap();
        let kubectl = cluster.kubectl().unwrap();
        let apply = |text: &str| run(&kubectl, &["apply", "-f", "-"], text);
        apply(Repository::new("0.1.0").components());
        let wait = "--for=condition=Established";
        run(&kubectl, &["wait", "crds", "--all", wait, "--timeout=120s"], "");
        run(&kubectl, &["create", "namespace", PAIRING], "");
        run(&kubectl, &["create", "serviceaccount", "box", "-n", PAIRING], "");
        let subject = format!("--serviceaccount={PAIRING}:box");
        let bind = ["create", "clusterrolebinding", "tinbox-pairing-box", &subject];
        run(&kubectl, &[&bind[..], &["--clusterrole=tinbox-system-controllers"]].concat(), "");
        let token = run(&kubectl, &["create", "token", "box", "-n", PAIRING], "");

        let runtime = Runtime::new().unwrap();
        let server = cluster.url().trim_start_matches("https://").to_owned();
        let relay = runtime.block_on(Relay::start(server));
        let user = json!({ "token": token.trim() });
        let kubeconfig = kubeconfig(&cluster, &relay.url(), &user);
        let kubeconfig = Kubeconfig::parse(&kubeconfig).unwrap();
        let (objects, writer) =
            runtime.block_on(async { RemoteObjects::new(&kubeconfig) }).unwrap();
        let shutdown = CancellationToken::new();
        runtime.spawn(writer.run(shutdown.clone()));
        Self { cluster, kubectl, relay, objects, shutdown, runtime }
    }

    /// Starts a watcher of all machines. The set collects the signaled names.
    fn watch(&self) -> (WatchedObjects, Arc<Mutex<BTreeSet<String>>>) {
        let (watcher, watched) =
            Watcher::new(&self.objects, Scope::all(MACHINE), Arc::new(SystemClock));
        let signaled = Arc::<Mutex<BTreeSet<String>>>::default();
        let names = Arc::clone(&signaled);
        let changed = move |key: ObjectKey| {
            names.lock().unwrap().insert(key.name);
        };
        self.runtime.spawn(watcher.run(changed, self.shutdown.clone()));
        (watched, signaled)
    }

    fn add(&self, name: &str) {
        run(&self.kubectl, &["apply", "-f", "-"], &machine(name).to_string());
    }

    fn delete(&self, name: &str) {
        run(&self.kubectl, &["delete", &format!("{}/{name}", MACHINE.plural)], "");
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn run(kubectl: &Kubectl, arguments: &[&str], input: &str) -> String {
    let printed = kubectl.run(arguments, input).unwrap();
    assert!(printed.success, "{arguments:?}: {printed:?}");
    printed.out
}

/// A kubeconfig with embedded data. The relay has an address that is not in the certificate.
fn kubeconfig(cluster: &Cluster, server: &str, user: &Value) -> String {
    let authority = STANDARD.encode(fs::read(cluster.folder().join("ca.crt")).unwrap());
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{ "name": "m", "cluster": {
            "server": server,
            "certificate-authority-data": authority,
            "tls-server-name": "kubernetes",
        } }],
        "users": [{ "name": "u", "user": user }],
        "contexts": [{ "name": "c", "context": { "cluster": "m", "user": "u" } }],
    });
    document.to_string()
}

fn machine(name: &str) -> Value {
    json!({
        "apiVersion": MACHINE.api_version(),
        "kind": MACHINE.kind,
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "bootOptions": { "bootMode": "netboot" } },
    })
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn names(watched: &WatchedObjects) -> BTreeSet<String> {
    let all = watched.all();
    all.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn remote_objects_are_read_and_written_under_the_rules_of_the_api() {
    let management = Management::start();
    let objects = &management.objects;
    management.runtime.block_on(async {
        let created = objects.create(MACHINE, machine("m1")).await.unwrap();
        let again = objects.create(MACHINE, machine("m1")).await.unwrap_err();
        assert!(matches!(again, ObjectError::AlreadyExists(_)), "{again}");
        let mut wrong = machine("m2");
        wrong["spec"]["bootOptions"]["bootMode"] = "floppy".into();
        let wrong = objects.create(MACHINE, wrong).await.unwrap_err();
        assert!(matches!(&wrong, ObjectError::Invalid(why) if why.contains("floppy")), "{wrong}");

        let mut changed = created.clone();
        changed["spec"]["providerID"] = "tinkerbell://default/n1".into();
        changed["metadata"]["finalizers"] = json!(["tinkerbellmachine.example.org"]);
        let changed = objects.update(MACHINE, changed).await.unwrap();
        let stale = objects.update(MACHINE, created.clone()).await.unwrap_err();
        assert!(matches!(stale, ObjectError::Conflict(_)), "{stale}");

        // The box sends a status without the spec, and the spec stays.
        let metadata = serde_json::from_value(changed["metadata"].clone()).unwrap();
        let status = json!({ "ready": true });
        objects::write_status(objects, MACHINE, &metadata, &status).await.unwrap();
        let stale = objects::write_status(objects, MACHINE, &metadata, &status).await;
        assert!(matches!(stale, Err(ObjectError::Conflict(_))), "{stale:?}");
        let read = objects.get(MACHINE, &key("m1")).await.unwrap();
        assert_eq!(read["status"]["ready"], true);
        assert_eq!(read["spec"], changed["spec"]);

        objects.delete(MACHINE, &key("m1")).await.unwrap();
        let mut held = objects.get(MACHINE, &key("m1")).await.unwrap();
        assert!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
        held["metadata"].as_object_mut().unwrap().remove("finalizers");
        objects.update(MACHINE, held).await.unwrap();
        let gone = objects.get(MACHINE, &key("m1")).await.unwrap_err();
        assert_eq!(gone, ObjectError::NotFound("TinkerbellMachine default/m1".to_owned()));
        let gone = objects.delete(MACHINE, &key("m1")).await.unwrap_err();
        assert!(matches!(gone, ObjectError::NotFound(_)), "{gone}");
        let gone = objects.update(MACHINE, changed).await.unwrap_err();
        assert!(matches!(gone, ObjectError::NotFound(_)), "{gone}");
    });
}

#[test]
fn remote_objects_are_not_gone_because_of_rights_or_definitions() {
    let management = Management::start();
    let objects = &management.objects;
    let unavailable = |error: ObjectError, hint: &str| {
        assert!(matches!(error, ObjectError::Unavailable { .. }), "{error}");
        assert!(error.hint().is_some_and(|it| it.contains(hint)), "{error}: {:?}", error.hint());
    };
    management.runtime.block_on(async {
        // The provider's rights include no list of secrets and no other kinds.
        unavailable(objects.list(SECRET, Some("default")).await.unwrap_err(), "ClusterRoleBinding");
        let binding = ObjectKey::new("", "tinbox-system-controllers");
        let error = objects.get(CLUSTER_ROLE_BINDING, &binding).await.unwrap_err();
        unavailable(error, "ClusterRoleBinding");
        let missing = objects.get(SECRET, &key("bootstrap")).await.unwrap_err();
        assert!(matches!(missing, ObjectError::NotFound(_)), "{missing}");
    });

    // An administrator by client certificate: the whole API, and an object without a namespace.
    let file =
        |name: &str| STANDARD.encode(fs::read(management.cluster.folder().join(name)).unwrap());
    let user = json!({
        "client-certificate-data": file("admin.crt"),
        "client-key-data": file("admin.key"),
    });
    let kubeconfig = kubeconfig(&management.cluster, &management.relay.url(), &user);
    let kubeconfig = Kubeconfig::parse(&kubeconfig).unwrap();
    management.runtime.block_on(async {
        let (admin, _writer) = RemoteObjects::new(&kubeconfig).unwrap();
        let binding = ObjectKey::new("", "tinbox-system-controllers");
        let read = admin.get(CLUSTER_ROLE_BINDING, &binding).await.unwrap();
        assert_eq!(read["roleRef"]["name"], "tinbox-system-controllers");
        // A group that the cluster does not serve, for one object and for all.
        let error = admin.get(HARDWARE, &key("n1")).await.unwrap_err();
        unavailable(error, "does not serve this kind");
        unavailable(admin.list(HARDWARE, None).await.unwrap_err(), "does not serve this kind");
        let other = Resource { plural: "tinkerbellracks", kind: "TinkerbellRack", ..MACHINE };
        unavailable(admin.get(other, &key("r1")).await.unwrap_err(), "does not serve this kind");
        // A namespace that is missing for a new object.
        let mut nowhere = machine("m1");
        nowhere["metadata"]["namespace"] = "nowhere".into();
        let error = admin.create(MACHINE, nowhere).await.unwrap_err();
        assert!(matches!(error, ObjectError::Unavailable { .. }), "{error}");
    });

    // The credential ends; the API server's cache of tokens forgets it after some seconds.
    management.add("m1");
    run(&management.kubectl, &["delete", "serviceaccount/box", "-n", PAIRING], "");
    let error = wait_for("the token to be refused", || {
        management.runtime.block_on(objects.get(MACHINE, &key("m1"))).err()
    });
    unavailable(error, "credential");
}

#[test]
fn remote_objects_keep_managed_fields_and_are_listed_in_pages() {
    let management = Management::start();
    let objects = &management.objects;
    let all: Vec<String> = (0..MANY).map(|at| machine(&format!("m{at:02}")).to_string()).collect();
    run(&management.kubectl, &["create", "-f", "-"], &all.join("\n---\n"));
    management.runtime.block_on(async {
        let listed = objects.list(MACHINE, Some("default")).await.unwrap();
        assert_eq!(listed.len(), MANY);
        assert_eq!(objects.list(MACHINE, None).await.unwrap().len(), MANY);
        assert_eq!(objects.list(MACHINE, Some("other")).await.unwrap().len(), 0);
        let mut changed = listed[0].clone();
        assert!(changed["metadata"].get("managedFields").is_none());
        changed["spec"]["hardwareName"] = "n1".into();
        objects.update(MACHINE, changed).await.unwrap();
    });
    let get = ["get", "tinkerbellmachines/m00", "--show-managed-fields", "-o", "json"];
    let stored: Value = serde_json::from_str(&run(&management.kubectl, &get, "")).unwrap();
    let managers = stored["metadata"]["managedFields"].as_array().unwrap().iter();
    let managers: Vec<&str> = managers.map(|it| it["manager"].as_str().unwrap()).collect();
    assert_eq!(managers, ["kubectl-create", "tinbox"]);

    objects.record(ObjectEvent {
        about: MACHINE,
        namespace: "default".to_owned(),
        name: "m00".to_owned(),
        uid: stored["metadata"]["uid"].as_str().unwrap().to_owned(),
        reason: "Provisioned".to_owned(),
        message: "The machine is provisioned.".to_owned(),
        warning: false,
        component: "tinbox".to_owned(),
        at: jiff::Timestamp::now(),
    });
    until("the event to be stored", || {
        let look = ["get", "events", "-o", "jsonpath={.items[*].reason}"];
        run(&management.kubectl, &look, "") == "Provisioned"
    });
}

#[test]
fn remote_objects_are_watched_through_outages() {
    let mut management = Management::start();
    management.add("m1");
    management.add("m2");
    let (watched, signaled) = management.watch();
    let signaled = || std::mem::take(&mut *signaled.lock().unwrap());
    let is_connected = |state: &WatchState| state.connected_since.is_some();
    let connected = || until("the watch", || is_connected(&watched.state()));
    let broken = || {
        wait_for("an error", || {
            watched.state().last_error.filter(|_| !is_connected(&watched.state()))
        })
    };
    connected();
    assert_eq!((names(&watched), signaled()), (set(&["m1", "m2"]), set(&["m1", "m2"])));
    management.add("m3");
    until("a new machine", || names(&watched).contains("m3"));
    management.delete("m3");
    until("its end", || !names(&watched).contains("m3"));
    assert_eq!(signaled(), set(&["m3"]));

    // No packet passes any more, in a connection that stays open.
    management.relay.set(Mode::Frozen);
    broken();
    assert_eq!((names(&watched), signaled()), (set(&["m1", "m2"]), set(&[])));
    management.delete("m1");
    management.add("m4");
    management.relay.set(Mode::Open);
    connected();
    assert_eq!((names(&watched), signaled()), (set(&["m2", "m4"]), set(&["m1", "m2", "m4"])));

    // The rights vanish, as in `clusterctl upgrade apply`, and connections break.
    let get = ["get", BINDING, "-o", "yaml"];
    let binding = run(&management.kubectl, &get, "");
    run(&management.kubectl, &["delete", BINDING], "");
    management.relay.set(Mode::Closed);
    broken();
    management.relay.set(Mode::Open);
    until("a refusal", || {
        watched.state().last_error.is_some_and(|it| it.text.contains("403 Forbidden"))
    });
    assert_eq!((names(&watched), signaled()), (set(&["m2", "m4"]), set(&[])));
    let forbidden = management.runtime.block_on(management.objects.get(MACHINE, &key("m2")));
    assert!(matches!(forbidden, Err(ObjectError::Unavailable { .. })), "{forbidden:?}");
    run(&management.kubectl, &["create", "-f", "-"], &binding);
    connected();
    assert_eq!(signaled(), set(&["m2", "m4"]));

    // The API server is killed and starts again.
    management.cluster.restart_apiserver(|| drop(broken())).unwrap();
    assert_eq!(names(&watched), set(&["m2", "m4"]));
    management.delete("m2");
    connected();
    until("the end of a machine", || names(&watched) == set(&["m4"]));
    until("its signal", || signaled().contains("m2"));
}
