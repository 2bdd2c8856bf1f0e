use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::meta::ObjectKey;
use axum::body::Body;
use futures_util::stream::{self, StreamExt as _};
use http::Response;
use serde_json::{Value, json};
use stdx::SystemClock;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    IDLE_TIMEOUT, LIST_INTERVAL, RETRY_FIRST, RETRY_MAX, WatchedObjects, Watcher, jittered,
};
use crate::remote::Scope;
use crate::remote::tests::{MACHINE, json_reply, machine, machines, remote, reply, status};

/// Faults of the fake server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// Every request has this status code and a `Status`.
    Refuses(u16, &'static str),
    /// Every request has the page of a proxy.
    Page(u16),
    /// Every watch ends at once.
    Ends,
    /// Every watch expires at its start.
    Expires,
}

struct Server {
    names: Vec<&'static str>,
    fault: Fault,
    lists: u32,
    watches: u32,
    /// Lines for the open watch; the receiver ends with the sender.
    lines: Option<broadcast::Sender<String>>,
}

/// A watcher, the fake server that it watches, and the keys that it signals.
struct Rig {
    server: Arc<Mutex<Server>>,
    watched: WatchedObjects,
    keys: mpsc::Receiver<ObjectKey>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Rig {
    /// Starts a watcher of the machines m1 and m2, and waits until it watches.
    async fn start() -> Self {
        let server = Server {
            names: vec!["m1", "m2"],
            fault: Fault::None,
            lists: 0,
            watches: 0,
            lines: None,
        };
        let server = Arc::new(Mutex::new(server));
        let shared = Arc::clone(&server);
        let (objects, _writer) =
            remote(move |seen| respond(&mut shared.lock().unwrap(), &seen.target));
        let (watcher, watched) = Watcher::new(&objects, Scope::all(MACHINE), Arc::new(SystemClock));
        let (sender, keys) = mpsc::channel(4096);
        let shutdown = CancellationToken::new();
        let changed = move |key| sender.try_send(key).unwrap();
        let task = tokio::spawn(watcher.run(changed, shutdown.clone()));
        let mut rig = Self { server, watched, keys, shutdown, task };
        rig.connected().await;
        assert_eq!(rig.signaled(), ["m1", "m2"].into());
        rig
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap()
    }

    async fn connected(&self) {
        let state = self.watched.wait_until(|state| state.connected_since.is_some()).await;
        assert_eq!(state.unwrap().next_try, None);
    }

    /// Sends an event on the open watch.
    fn send(&self, kind: &str, object: &Value) {
        let line = json!({ "type": kind, "object": object }).to_string();
        self.server().lines.as_ref().unwrap().send(line + "\n").unwrap();
    }

    /// Cuts the open watch off.
    fn cut(&self) {
        self.server().lines = None;
    }

    async fn next(&mut self) -> String {
        self.keys.recv().await.unwrap().name
    }

    /// Returns the names that were signaled since the last call.
    fn signaled(&mut self) -> BTreeSet<&'static str> {
        let mut names = BTreeSet::new();
        while let Ok(key) = self.keys.try_recv() {
            names.insert(["m1", "m2", "m3"].into_iter().find(|name| *name == key.name).unwrap());
        }
        names
    }

    fn copy(&self) -> Vec<String> {
        let all = self.watched.all();
        all.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
    }
}

fn respond(server: &mut Server, target: &str) -> Response<Body> {
    let is_watch = target.contains("watch=true");
    if is_watch {
        server.watches += 1;
    } else {
        server.lists += 1;
    }
    match server.fault {
        Fault::Refuses(code, reason) => json_reply(code, &status(code, reason)),
        Fault::Page(code) => reply(code, "<html>gateway</html>"),
        Fault::Ends if is_watch => reply(200, ""),
        Fault::Expires if is_watch => json_reply(410, &status(410, "Expired")),
        _ if !is_watch => json_reply(200, &machines(&server.names, "100")),
        _ => {
            assert!(target.contains("resourceVersion=100"), "{target}");
            assert!(target.contains("allowWatchBookmarks=true&resourceVersion"), "{target}");
            let (sender, receiver) = broadcast::channel(16);
            server.lines = Some(sender);
            let lines = stream::unfold(receiver, |mut receiver| async {
                let line = receiver.recv().await.ok()?;
                Some((Ok::<_, Infallible>(line), receiver))
            });
            reply(200, Body::from_stream(lines.boxed()))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_change_signals_its_object() {
    let mut rig = Rig::start().await;
    rig.send("ADDED", &machine("m3", "101"));
    assert_eq!(rig.next().await, "m3");
    rig.send("DELETED", &machine("m1", "102"));
    assert_eq!(rig.next().await, "m1");
    assert_eq!(rig.copy(), ["m2", "m3"]);
    assert_eq!(rig.watched.state().objects, 2);
    let changed = rig.watched.get(&ObjectKey::new("default", "m3")).unwrap();
    assert_eq!(changed["metadata"]["resourceVersion"], "101");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_hours_changes_no_object() {
    let faults = [
        Fault::Refuses(401, "Unauthorized"),
        Fault::Refuses(403, "Forbidden"),
        Fault::Refuses(404, "NotFound"),
        Fault::Refuses(500, "InternalError"),
        Fault::Page(200),
        Fault::Page(404),
        Fault::Page(502),
    ];
    for fault in faults {
        let mut rig = Rig::start().await;
        let connected = rig.watched.state();
        rig.server().fault = fault;
        rig.cut();
        let hours = Duration::from_secs(3 * 3600);
        tokio::time::sleep(hours).await;
        assert_eq!(rig.copy(), ["m1", "m2"], "{fault:?}");
        assert_eq!(rig.signaled(), BTreeSet::new(), "{fault:?}");
        let state = rig.watched.state();
        assert!(state.connected_since.is_none() && state.next_try.is_some(), "{state:?}");
        assert_eq!(state.listed_at, connected.listed_at);
        let error = state.last_error.as_ref().unwrap();
        assert!(!error.text.is_empty(), "{error:?}");
        // The longest wait is RETRY_MAX, the shortest half of it.
        let fewest = u32::try_from(hours.as_secs() / RETRY_MAX.as_secs()).unwrap();
        assert!((fewest..=2 * fewest + 16).contains(&state.failures), "{fault:?}: {state:?}");

        // An object vanished meanwhile, and another is new.
        rig.server().names = vec!["m2", "m3"];
        rig.server().fault = Fault::None;
        rig.connected().await;
        assert_eq!(rig.signaled(), ["m1", "m2", "m3"].into());
        assert_eq!(rig.copy(), ["m2", "m3"]);
        let state = rig.watched.state();
        assert!(state.failures == 0 && state.last_error.is_some(), "{state:?}");
        rig.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_expires_during_a_watch_is_an_outage() {
    let mut rig = Rig::start().await;
    rig.server().fault = Fault::Refuses(401, "Unauthorized");
    rig.send("ERROR", &status(401, "Unauthorized"));
    let state = rig.watched.wait_until(|state| state.failures > 0).await.unwrap();
    let error = state.last_error.unwrap();
    assert!(error.hint.unwrap().contains("kubeconfig"), "{}", error.text);
    assert_eq!(rig.copy(), ["m1", "m2"]);
    assert_eq!(rig.signaled(), BTreeSet::new());
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_revision_leads_to_a_list_and_is_not_an_error() {
    let mut rig = Rig::start().await;
    rig.server().names = vec!["m2"];
    rig.send("ERROR", &status(410, "Expired"));
    let names = BTreeSet::from([rig.next().await, rig.next().await]);
    assert_eq!(names, ["m1", "m2"].map(str::to_owned).into());
    assert_eq!((rig.server().lists, rig.copy()), (2, vec!["m2".to_owned()]));
    assert_eq!(rig.watched.state().last_error, None);
    // A server whose every watch expires is an error, and no busy loop.
    rig.server().fault = Fault::Expires;
    rig.cut();
    rig.watched.wait_until(|state| state.failures > 0).await.unwrap();
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_dead() {
    let rig = Rig::start().await;
    let started = tokio::time::Instant::now();
    let state = rig.watched.wait_until(|state| state.failures > 0).await.unwrap();
    assert!(started.elapsed() >= IDLE_TIMEOUT);
    assert!(state.last_error.unwrap().text.contains("no event"));
    assert_eq!(rig.copy(), ["m1", "m2"]);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_continues_without_a_list() {
    let mut rig = Rig::start().await;
    let start = tokio::time::Instant::now();
    while start.elapsed() < LIST_INTERVAL - Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let bookmark = json!({
            "apiVersion": MACHINE.api_version(),
            "kind": MACHINE.kind,
            "metadata": { "resourceVersion": "100" },
        });
        rig.send("BOOKMARK", &bookmark);
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.cut();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(rig.signaled(), BTreeSet::new());
    assert_eq!(rig.server().lists, 1);
    assert!(rig.server().watches > 5);
    assert_eq!(rig.watched.state().last_error, None);
    // The regular list signals all objects.
    tokio::time::sleep(Duration::from_secs(60)).await;
    rig.cut();
    assert_eq!(rig.next().await, "m1");
    assert_eq!(rig.server().lists, 2);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_ends_each_watch_causes_no_busy_loop() {
    let rig = Rig::start().await;
    rig.server().fault = Fault::Ends;
    rig.cut();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let watches = rig.server().watches;
    assert!(watches < 140, "{watches} watches in an hour");
    assert_eq!(rig.copy(), ["m1", "m2"]);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_malformed_event_is_an_outage() {
    for line in ["<html>", "{}", "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Status\"}}"] {
        let mut rig = Rig::start().await;
        rig.server().fault = Fault::Page(502);
        rig.server().lines.as_ref().unwrap().send(format!("{line}\n")).unwrap();
        rig.watched.wait_until(|state| state.failures > 0).await.unwrap();
        assert_eq!((rig.copy().len(), rig.signaled()), (2, BTreeSet::new()));
        rig.stop().await;
    }
}

#[test]
fn jitter_shortens_a_wait_by_at_most_a_half() {
    let wait = RETRY_FIRST;
    assert_eq!(jittered(wait, 0), wait);
    assert_eq!(jittered(wait, u16::MAX), wait / 2);
    assert!(jittered(RETRY_MAX, u16::MAX / 2) > RETRY_MAX / 2);
}
