//! Watcher of one kind in a management cluster. It keeps a copy of the objects, and signals a
//! controller after each change.
//!
//! A list gives all objects of one revision, a watch the changes since. An error of either leads
//! to a new list after a wait: what happened meanwhile is unknown, and the management cluster may
//! be restored from a backup. Until the list is complete, the copy stays as it is, however long
//! the outage lasts.

mod copy;
mod state;

use std::sync::Arc;
use std::time::Duration;

use api::meta::ObjectKey;
use futures_util::StreamExt as _;
use kube::api::{WatchEvent, WatchParams};
use serde_json::Value;
use stdx::{Backoff, Clock};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::codec::LinesCodecError;
use tokio_util::sync::CancellationToken;

use super::connection::{self, Connection, Lines};
use super::failure::{self, Failure};
use super::list::{self, OBJECTS_MAX, Scope};
use super::{RemoteObjects, path};

use self::copy::{Copy, Full};
pub use self::state::{WatchError, WatchState, WatchedObjects};

/// Time after which the server ends a watch.
const WATCH_TIMEOUT: Duration = Duration::from_secs(240);
/// Maximum time without an event or a bookmark: a server that is alive ends the watch earlier.
/// HTTP/2 pings detect a dead connection sooner; a proxy may answer pings for a dead server.
const IDLE_TIMEOUT: Duration = Duration::from_secs(270);
/// Minimum time of a watch that ends without an event. A shorter one is an error, so that a proxy
/// which ends each response at once does not cause a busy loop.
const WATCH_MIN: Duration = Duration::from_secs(5);
/// Minimum time of a watch that fails, for the waits to begin with the shortest again.
const WATCH_STABLE: Duration = Duration::from_secs(60);
/// Interval of complete lists while the watch works.
const LIST_INTERVAL: Duration = Duration::from_secs(600);
/// Wait after the first error.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Maximum wait: the box notices the end of an outage within a minute.
const RETRY_MAX: Duration = Duration::from_secs(60);

const TOO_LARGE: &str = "an event is larger than an object of Kubernetes";

/// Watcher of a scope.
pub struct Watcher {
    connection: Connection,
    scope: Scope,
    clock: Arc<dyn Clock>,
    copy: Arc<Copy>,
    state: watch::Sender<WatchState>,
    backoff: Backoff,
}

impl Watcher {
    /// Creates a watcher, and the reading side of its copy.
    pub fn new(
        objects: &RemoteObjects,
        scope: Scope,
        clock: Arc<dyn Clock>,
    ) -> (Self, WatchedObjects) {
        let copy = Arc::<Copy>::default();
        let (state, reader) = watch::channel(WatchState::default());
        let watched = WatchedObjects::new(scope.clone(), Arc::clone(&copy), reader);
        let backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
        let connection = objects.connection.clone();
        (Self { connection, scope, clock, copy, state, backoff }, watched)
    }

    /// Lists and watches until `shutdown`. Calls `changed` after each change of an object, and
    /// after each list for all objects and for those that vanished; the copy is already new then.
    ///
    /// No machine may be erased because an object vanished.
    pub async fn run(mut self, changed: impl Fn(ObjectKey) + Send, shutdown: CancellationToken) {
        let work = async {
            loop {
                let Err(failure) = self.follow(&changed).await;
                let wait = jittered(self.backoff.next_wait(), random());
                self.report(failure, wait);
                tokio::time::sleep(wait).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = work => {}
        }
    }

    fn report(&self, failure: Failure, wait: Duration) {
        let kind = self.scope.resource.kind;
        let error = match failure {
            // Part of normal operation, unless the next watch expires too.
            Failure::Expired(error) if wait <= RETRY_FIRST => {
                return tracing::debug!(kind, %error, "the watch expired");
            }
            Failure::Object(error) | Failure::Expired(error) => error,
        };
        let now = self.clock.now();
        let was_connected = self.state.borrow().connected_since.is_some();
        if was_connected || self.state.borrow().failures == 0 {
            tracing::warn!(kind, %error, "the watch of the management cluster is interrupted");
        } else {
            tracing::debug!(kind, %error, ?wait, "the management cluster is not reachable yet");
        }
        self.state.send_modify(|state| state.fail(now, &error, wait));
    }

    /// Lists and watches until an error.
    async fn follow(
        &mut self,
        changed: &(impl Fn(ObjectKey) + Send),
    ) -> Result<std::convert::Infallible, Failure> {
        loop {
            let mut revision = self.list(changed).await?;
            let listed = Instant::now();
            while listed.elapsed() < LIST_INTERVAL {
                self.watch(&mut revision, changed).await?;
            }
        }
    }

    /// Replaces the copy by a complete list. Returns the revision of the list.
    async fn list(&self, changed: &(impl Fn(ObjectKey) + Send)) -> Result<String, Failure> {
        let number = self.copy.begin_list();
        let list = list::list(&self.connection, &self.scope).await?;
        let keys = self.copy.replace(number, &list.revision, list.items);
        let (now, objects) = (self.clock.now(), self.copy.len());
        self.state.send_modify(|state| {
            state.listed_at = Some(now);
            state.objects = objects;
        });
        keys.into_iter().for_each(changed);
        Ok(list.revision)
    }

    /// Processes changes since `revision` until the server ends the watch.
    async fn watch(
        &mut self,
        revision: &mut String,
        changed: &(impl Fn(ObjectKey) + Send),
    ) -> Result<(), Failure> {
        let lines = self.open(revision).await?;
        let opened = Instant::now();
        self.connected();
        let result = self.events(lines, revision, changed).await;
        if result.is_ok() || opened.elapsed() >= WATCH_STABLE {
            self.backoff.reset();
        }
        result
    }

    async fn events(
        &self,
        mut lines: Lines,
        revision: &mut String,
        changed: &(impl Fn(ObjectKey) + Send),
    ) -> Result<(), Failure> {
        let subject = self.scope.subject();
        let (opened, mut is_silent) = (Instant::now(), true);
        loop {
            let Ok(line) = timeout(IDLE_TIMEOUT, lines.next()).await else {
                let what = format!("no event and no end of the watch in {IDLE_TIMEOUT:?}");
                return Err(failure::of_silence(&subject, &what).into());
            };
            let Some(line) = line else {
                if is_silent && opened.elapsed() < WATCH_MIN {
                    let why = "the server ended the watch at once";
                    return Err(failure::of_silence(&subject, why).into());
                }
                return Ok(());
            };
            let line = line.map_err(|error| match error {
                LinesCodecError::MaxLineLengthExceeded => subject.unavailable(TOO_LARGE, None),
                LinesCodecError::Io(error) => failure::of_transport(&subject, &error),
            })?;
            let event = serde_json::from_str::<WatchEvent<Value>>(&line)
                .map_err(|_| failure::of_unexpected(&subject, "an event of a watch", &line))?;
            *revision = self.apply(event, changed)?;
            is_silent = false;
        }
    }

    async fn open(&self, revision: &str) -> Result<Lines, Failure> {
        let (subject, scope) = (self.scope.subject(), &self.scope);
        let seconds = u32::try_from(WATCH_TIMEOUT.as_secs()).unwrap_or(u32::MAX);
        let mut options = WatchParams::default().timeout(seconds);
        if !scope.labels.is_empty() {
            options = options.labels(&scope.labels);
        }
        let target = path::collection(scope.resource, &scope.namespace)?;
        let request = kube::core::Request::new(target).watch(&options, revision);
        let request = request.map_err(|error| failure::of_transport(&subject, &error))?;
        self.connection.watch(&subject, request).await
    }

    fn connected(&self) {
        if self.state.borrow().connected_since.is_some() {
            return;
        }
        let now = self.clock.now();
        tracing::info!(kind = self.scope.resource.kind, "the management cluster is watched");
        self.state.send_modify(|state| state.connect(now));
    }

    /// Applies one event to the copy. Returns the revision after the event.
    fn apply(
        &self,
        event: WatchEvent<Value>,
        changed: &(impl Fn(ObjectKey) + Send),
    ) -> Result<String, Failure> {
        let subject = self.scope.subject();
        let (mut object, is_deleted) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => return Ok(bookmark.metadata.resource_version),
            WatchEvent::Error(status) => {
                let code = connection::code(status.code);
                return Err(failure::of_status(&subject, code, &status));
            }
        };
        let is_object = list::complete(self.scope.resource, &mut object);
        let revision = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let Some(revision) = revision.filter(|_| is_object).map(str::to_owned) else {
            let found = object.to_string();
            return Err(failure::of_unexpected(&subject, "an object of the kind", &found).into());
        };
        let key = list::key(&object);
        if is_deleted {
            self.copy.remove(&key, &object);
        } else if let Err(Full) = self.copy.put(key.clone(), object) {
            let why = format!("more than {OBJECTS_MAX} objects");
            return Err(subject.unavailable(why, Some(list::TOO_MANY)).into());
        }
        let objects = self.copy.len();
        self.state.send_if_modified(|state| {
            let is_new = state.objects != objects;
            state.objects = objects;
            is_new
        });
        changed(key);
        Ok(revision)
    }
}

/// Shortens a wait by up to a half, so that the boxes of a management cluster do not reconnect at
/// one time.
fn jittered(wait: Duration, random: u16) -> Duration {
    wait - wait / 2 * u32::from(random) / u32::from(u16::MAX)
}

fn random() -> u16 {
    let mut bytes = [0; 2];
    // Without randomness the wait keeps its length.
    let _ = getrandom::fill(&mut bytes);
    u16::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests;
