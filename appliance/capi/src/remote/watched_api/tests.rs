use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use api::core::SECRET;
use api::meta::ObjectKey;
use axum::body::Body;
use futures_util::stream::{self, StreamExt as _};
use http::{Method, Response};
use objects::{ObjectError, Objects as _};
use serde_json::{Value, json};
use stdx::SystemClock;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::WatchedApi;
use crate::remote::tests::{MACHINE, Sent, json_reply, machine, machines, remote, status};
use crate::remote::{Scope, WatchedObjects, Watcher};

/// Fake server with the machine m1 at revision 100.
#[derive(Default)]
struct Server {
    /// Requests except lists and watches of all machines.
    seen: Vec<String>,
    /// Status code of each list and watch, and of each read of an object; 0 for success.
    refuses: u16,
    /// Revision of the machine in responses; 0 for the list's.
    revision: u64,
    lines: Option<broadcast::Sender<String>>,
}

struct Rig {
    server: Arc<Mutex<Server>>,
    live: WatchedApi,
    watched: WatchedObjects,
    task: JoinHandle<()>,
}

impl Rig {
    /// Starts a watcher, and waits until it watches.
    async fn start(scope: Scope) -> Self {
        let server = Arc::<Mutex<Server>>::default();
        let shared = Arc::clone(&server);
        let (remote, _writer) = remote(move |sent| shared.lock().unwrap().respond(&sent));
        let (watcher, watched) = Watcher::new(&remote, scope, Arc::new(SystemClock));
        let task = tokio::spawn(watcher.run(|_| {}, CancellationToken::new()));
        let live = WatchedApi::live(&remote, vec![watched.clone()]);
        let rig = Self { server, live, watched, task };
        rig.watched.wait_until(|state| state.connected_since.is_some()).await.unwrap();
        rig
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap()
    }

    /// Returns the requests since the last call.
    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.server().seen)
    }

    /// Reads a machine through its copy. Returns its revision.
    async fn read(&self, name: &str) -> Result<Value, ObjectError> {
        let object = self.live.watched().get(MACHINE, &ObjectKey::new("default", name)).await?;
        Ok(object["metadata"]["resourceVersion"].clone())
    }

    /// Interrupts the watch by an answer of the server, and waits until it is noticed.
    async fn interrupt(&self, code: u16) {
        self.server().refuses = code;
        self.server().lines = None;
        self.watched.wait_until(|state| state.connected_since.is_none()).await.unwrap();
    }
}

impl Server {
    fn respond(&mut self, sent: &Sent) -> Response<Body> {
        let is_one = sent.target.contains("/m1") || sent.target.contains("/m2");
        let is_secret = sent.target.contains("/secrets/");
        let is_one = is_one || is_secret;
        let is_watch = sent.target.contains("watch=true");
        if is_one || sent.target.contains("/namespaces/other/") {
            self.seen.push(sent.method.to_string());
        }
        match self.refuses {
            0 => {}
            404 => return json_reply(404, &status(404, "NotFound")),
            code => return json_reply(code, &status(code, "Refused")),
        }
        if is_watch {
            let (sender, receiver) = broadcast::channel(16);
            self.lines = Some(sender);
            let lines = stream::unfold(receiver, |mut receiver| async {
                let line = receiver.recv().await.ok()?;
                Some((Ok::<_, Infallible>(line), receiver))
            });
            return Response::new(Body::from_stream(lines.boxed()));
        }
        let revision = if self.revision == 0 { 100 } else { self.revision }.to_string();
        match (&sent.method, is_one) {
            (&Method::GET, true) if sent.target.contains("/m2") => {
                let details = json!({ "name": "m2", "kind": MACHINE.plural,
                    "group": MACHINE.group });
                let mut gone = status(404, "NotFound");
                gone["details"] = details;
                json_reply(404, &gone)
            }
            (&Method::GET, true) if is_secret => {
                let metadata = json!({ "name": "s", "namespace": "default",
                    "resourceVersion": "1" });
                json_reply(200, &json!({ "metadata": metadata }))
            }
            (_, true) => json_reply(200, &machine("m1", &revision)),
            (_, false) => json_reply(200, &machines(&["m1"], &revision)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watched_object_is_read_without_a_request_and_a_secret_is_not_kept() {
    let rig = Rig::start(Scope::all(MACHINE)).await;
    assert_eq!(rig.read("m1").await.unwrap(), "100");
    let listed = rig.live.watched().list(MACHINE, Some("default")).await.unwrap();
    assert_eq!((listed.len(), rig.seen()), (1, Vec::new()));
    for _ in 0..2 {
        rig.live.watched().get(SECRET, &ObjectKey::new("default", "s")).await.unwrap();
    }
    assert_eq!(rig.seen(), ["GET", "GET"]);
    rig.live.get(MACHINE, &ObjectKey::new("default", "m1")).await.unwrap();
    assert_eq!(rig.seen(), ["GET"], "a live read");
    rig.task.abort();
}

#[tokio::test(start_paused = true)]
async fn only_the_server_reports_an_object_as_missing() {
    let rig = Rig::start(Scope::all(MACHINE)).await;
    assert!(matches!(rig.read("m2").await, Err(ObjectError::NotFound(_))));
    assert_eq!(rig.seen(), ["GET"]);
    for code in [401, 403, 410, 500] {
        rig.interrupt(code).await;
        let error = rig.read("m1").await.unwrap_err();
        assert!(!matches!(error, ObjectError::NotFound(_)), "{error}");
        assert_eq!(rig.seen(), ["GET"], "the copy is not used while the watch does not work");
        rig.server().refuses = 0;
        rig.watched.wait_until(|state| state.connected_since.is_some()).await.unwrap();
        assert_eq!((rig.read("m1").await.unwrap(), rig.seen()), (json!("100"), Vec::new()));
    }
    rig.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_read_after_a_write_is_as_new_as_the_write() {
    let rig = Rig::start(Scope::all(MACHINE)).await;
    rig.server().revision = 107;
    rig.live.update_status(MACHINE, machine("m1", "100")).await.unwrap();
    assert_eq!(rig.read("m1").await.unwrap(), "107");
    rig.server().revision = 108;
    rig.live.watched().update(MACHINE, machine("m1", "107")).await.unwrap();
    assert_eq!(rig.read("m1").await.unwrap(), "108");
    assert_eq!(rig.seen(), ["PUT", "PUT"]);
    // The event of the first write comes late.
    let event = json!({ "type": "MODIFIED", "object": machine("m1", "107") });
    rig.server().lines.as_ref().unwrap().send(format!("{event}\n")).unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(rig.read("m1").await.unwrap(), "108");
    rig.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_scope_without_all_objects_answers_no_list() {
    let labeled = Scope { labels: "a=b".to_owned(), ..Scope::all(MACHINE) };
    let rig = Rig::start(labeled).await;
    assert!(rig.watched.all_current(None).is_none());
    assert_eq!((rig.read("m1").await.unwrap(), rig.seen()), (json!("100"), Vec::new()));
    rig.task.abort();
    let one = Scope { namespace: "default".to_owned(), ..Scope::all(MACHINE) };
    let rig = Rig::start(one).await;
    assert!(rig.watched.all_current(None).is_none());
    assert!(rig.watched.all_current(Some("other")).is_none());
    assert_eq!(rig.watched.all_current(Some("default")).unwrap().len(), 1);
    rig.task.abort();
}
