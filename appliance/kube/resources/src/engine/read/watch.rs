//! Watches, which report changes of objects that match the watch's selectors.

mod initial;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::{Change, ChangeKind, Key, Stored};
use tokio::sync::watch::Receiver;

use self::initial::InitialObjects;
use super::selection::Selection;
use super::text::{write_served, write_value};
use crate::definition::{Registry, ResourceDefinition};
use crate::engine::Engine;
use crate::object::decode_written;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::{Reason, StatusError, failed};

/// Interval of bookmarks in a watch that requested them.
pub const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// Annotation of the bookmark that ends the initial events of a streaming list.
pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Handling of the existing objects at the start of a watch (`sendInitialEvents`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InitialEvents {
    /// Sends the existing objects first if the request has no revision.
    #[default]
    Usual,
    /// Sends the existing objects first, at the requested or a later revision (a streaming list).
    /// If bookmarks are requested, a bookmark ends the existing objects.
    Send,
    /// Sends no existing objects; without a revision, only changes from now on.
    Skip,
}

/// Options of a watch request.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Reports only objects whose labels match.
    pub labels: LabelSelector,
    /// Reports only objects whose fields match.
    pub fields: FieldSelector,
    /// Revision after which changes are reported; `None` starts as `initial` defines.
    pub after: Option<u64>,
    /// Handling of the existing objects at the start.
    pub initial: InitialEvents,
    /// Sends a bookmark every `BOOKMARK_EVERY` if true.
    pub bookmarks: bool,
}

/// Type of a watch event; an object that does not match the selectors counts as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The object exists at the start, was created, or has begun to match the selectors.
    Added,
    /// The object changed and still matches.
    Modified,
    /// The object was deleted or no longer matches. The event has the object's last matching state,
    /// with the revision of the change.
    Deleted,
    /// No change; the event contains only the revision up to which all events were sent.
    Bookmark,
}

/// Event of a watch, with its object parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// Type of the event.
    pub kind: EventKind,
    /// Object in served form; for a bookmark, only kind and revision.
    pub object: Value,
}

/// A watch event whose object is not yet parsed.
pub struct RawEvent {
    /// Type of the event.
    pub kind: EventKind,
    object: RawObject,
    definition: Arc<ResourceDefinition>,
}

enum RawObject {
    /// Stored object, and the revision at which its bytes were written.
    Stored(Stored, u64),
    Made(Value),
}

impl RawEvent {
    /// Returns the event with its object parsed into a tree.
    ///
    /// # Errors
    /// Returns an error if the stored bytes are not what the engine wrote.
    pub fn read(self) -> Result<WatchEvent, StatusError> {
        let object = match self.object {
            RawObject::Stored(stored, written) => {
                decode_written(&self.definition, &stored, written)?
            }
            RawObject::Made(object) => object,
        };
        Ok(WatchEvent { kind: self.kind, object })
    }

    /// Approximate size of the object in bytes; 0 for a bookmark.
    pub fn bytes(&self) -> usize {
        match &self.object {
            RawObject::Stored(stored, _) => stored.value.len(),
            RawObject::Made(_) => 0,
        }
    }

    /// Appends the object's text to `out`.
    ///
    /// # Errors
    /// Returns an error if the stored bytes are not what the engine wrote.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), StatusError> {
        match &self.object {
            RawObject::Stored(stored, written) => {
                write_served(&self.definition, stored, *written, out)
            }
            RawObject::Made(object) => write_value(object, out),
        }
    }
}

/// Watch on one resource.
pub struct ObjectWatch {
    /// Initial objects that are not yet reported.
    initial: Option<InitialObjects>,
    /// True until the end of the initial events has been reported.
    streaming: bool,
    live: store::Watch,
    selection: Selection,
    bookmarks: Option<tokio::time::Interval>,
    /// Name of the watched resource in the caller's form, such as `/secrets`.
    resource: String,
    definition: Arc<ResourceDefinition>,
    /// Registry of served kinds, to detect that this kind changed or was removed.
    kinds: Receiver<Arc<Registry>>,
    /// Revision of the state that the initial events show, or after which the watch started.
    floor: u64,
}

impl Engine {
    /// Watches `resource` in one namespace or in all.
    ///
    /// # Errors
    /// 410 if the changes after `options.after` are no longer stored, 504 for a future revision,
    /// 400 for invalid selectors.
    pub async fn watch(
        &self,
        resource: &str,
        namespace: Option<&str>,
        options: WatchOptions,
    ) -> Result<ObjectWatch, StatusError> {
        let kinds = self.inner.kinds.subscribe();
        let definition = self.definition(resource)?;
        options.fields.check(&definition)?;
        let selection = Selection { labels: options.labels, fields: options.fields };
        let (floor, initial) = match (options.initial, options.after) {
            (InitialEvents::Usual | InitialEvents::Skip, Some(revision)) => (revision, None),
            (InitialEvents::Skip, None) => (self.revision(), None),
            (InitialEvents::Usual | InitialEvents::Send, least) => {
                let (least, newest) = (least.unwrap_or(0), self.revision());
                if least > newest {
                    return Err(StatusError::from_the_future(least, newest));
                }
                let initial =
                    InitialObjects::begin(self, &definition, namespace, &selection).await?;
                (initial.floor, Some(initial))
            }
        };
        let live = self
            .inner
            .store
            .watch(&definition.id(), namespace, floor)
            .map_err(|error| failed("watch objects", &error))?;
        let bookmarks = options.bookmarks.then(|| {
            let first = tokio::time::Instant::now() + BOOKMARK_EVERY;
            tokio::time::interval_at(first, BOOKMARK_EVERY)
        });
        let streaming = options.bookmarks && options.initial == InitialEvents::Send;
        let resource = resource.to_owned();
        Ok(ObjectWatch {
            initial,
            streaming,
            live,
            selection,
            bookmarks,
            resource,
            definition,
            kinds,
            floor,
        })
    }
}

impl ObjectWatch {
    /// Waits for the next event and returns it. The future can be dropped without loss of an event.
    ///
    /// # Errors
    /// 410 if the watch fell too far behind, or if the kind changed. The client must list again.
    pub async fn next(&mut self) -> Result<WatchEvent, StatusError> {
        match self.next_raw().await? {
            Some(event) => event.read(),
            None => Err(StatusError::new(Reason::Expired, "the watched kind has changed")),
        }
    }

    /// Works as [`Self::next`] without parsing the object; `None` if the kind changed.
    ///
    /// # Errors
    /// 410 if the watch fell too far behind.
    pub async fn next_raw(&mut self) -> Result<Option<RawEvent>, StatusError> {
        if let Some(initial) = &mut self.initial {
            if let Some(stored) = initial.next().await? {
                let written = stored.revision;
                return Ok(Some(self.event(EventKind::Added, RawObject::Stored(stored, written))));
            }
            self.initial = None;
        }
        if std::mem::take(&mut self.streaming) {
            let mut object = self.progress(self.floor);
            object["metadata"]["annotations"] = json!({ INITIAL_EVENTS_END: "true" });
            return Ok(Some(self.event(EventKind::Bookmark, RawObject::Made(object))));
        }
        loop {
            let change = tokio::select! {
                biased;
                // Changes of objects come before changes of their kind.
                change = self.live.next() => change,
                () = changed(&mut self.kinds) => match self.is_defined_as_before() {
                    true => continue,
                    false => return Ok(None),
                },
                () = due(&mut self.bookmarks) => return Ok(Some(self.bookmark_raw())),
            };
            let change = change.map_err(|error| failed("watch objects", &error))?;
            if let Some((kind, object)) = self.seen(change)? {
                return Ok(Some(self.event(kind, object)));
            }
        }
    }

    fn is_defined_as_before(&self) -> bool {
        let spec = |one: &ResourceDefinition| one.origin.map(|origin| origin.spec);
        let registry = self.kinds.borrow();
        registry.by_id(&self.resource).is_some_and(|now| spec(now) == spec(&self.definition))
    }

    /// Frees events that were read ahead and can be read again, while the client is slow.
    pub fn rest(&mut self) {
        self.live.rest();
    }

    /// Returns the bytes of buffered objects that the client has not requested yet.
    #[cfg(test)]
    pub(in crate::engine) fn held(&self) -> usize {
        self.initial.as_ref().map_or(0, InitialObjects::held) + self.live.held()
    }

    /// Returns a bookmark event with the revision up to which all events were reported.
    pub fn bookmark(&self) -> WatchEvent {
        let object = self.progress(self.live.revision().max(self.floor));
        WatchEvent { kind: EventKind::Bookmark, object }
    }

    /// Works as [`Self::bookmark`], but returns a [`RawEvent`].
    pub fn bookmark_raw(&self) -> RawEvent {
        let WatchEvent { kind, object } = self.bookmark();
        self.event(kind, RawObject::Made(object))
    }

    /// Returns true if all initial events were returned, so that a bookmark may be sent.
    pub fn is_caught_up(&self) -> bool {
        self.initial.as_ref().is_none_or(InitialObjects::is_over) && !self.streaming
    }

    fn progress(&self, revision: u64) -> Value {
        json!({
            "apiVersion": self.definition.api_version(),
            "kind": self.definition.kind,
            "metadata": { "resourceVersion": revision.to_string() },
        })
    }

    fn event(&self, kind: EventKind, object: RawObject) -> RawEvent {
        RawEvent { kind, object, definition: self.definition.clone() }
    }

    fn chooses(&self, key: &Key, stored: &Stored) -> Result<bool, StatusError> {
        self.selection.chooses(&self.definition, key, stored)
    }

    /// Converts a store change to an event of this watch; `None` if the change does not match.
    fn seen(&self, change: Change) -> Result<Option<(EventKind, RawObject)>, StatusError> {
        let Change { revision, key, kind } = change;
        let now = |stored: Stored| RawObject::Stored(stored, revision);
        // The last matching state, with the revision of the change.
        let gone = |before: Stored| {
            let written = before.revision;
            (EventKind::Deleted, RawObject::Stored(Stored { revision, ..before }, written))
        };
        Ok(match kind {
            ChangeKind::Put { value, previous } => {
                let stored = Stored { revision, value };
                let matches = self.chooses(&key, &stored)?;
                let before = match previous {
                    Some(before) if self.chooses(&key, &before)? => Some(before),
                    _ => None,
                };
                match (before, matches) {
                    (None, true) => Some((EventKind::Added, now(stored))),
                    (Some(_), true) => Some((EventKind::Modified, now(stored))),
                    (Some(before), false) => Some(gone(before)),
                    (None, false) => None,
                }
            }
            ChangeKind::Delete { previous } => {
                let matched = self.chooses(&key, &previous)?;
                matched.then(|| gone(previous))
            }
        })
    }
}

/// Waits until the registry changes. Never returns after the engine was dropped, because the store
/// then reports a better error.
async fn changed(kinds: &mut Receiver<Arc<Registry>>) {
    if kinds.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Waits until the next bookmark is due; never returns if no bookmarks were requested.
async fn due(bookmarks: &mut Option<tokio::time::Interval>) {
    match bookmarks {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
    }
}
