//! Watching: what changed, as the watcher's selectors see it.

mod initial;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::{Change, ChangeKind, Key, Stored};
use tokio::sync::watch::Receiver;

use self::initial::Initial;
use super::selection::Selection;
use super::text::{write_served, write_value};
use crate::definition::{Registry, ResourceDefinition};
use crate::engine::object::decode_written;
use crate::engine::{Engine, failed};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::{Reason, StatusError};

/// How often a watch that asked for it is told how far it has come.
pub const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// What the bookmark behind the initial events of a streaming list is annotated with.
pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Whether a watch begins with what there is already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InitialEvents {
    /// Yes, unless it is to begin after a revision.
    #[default]
    Usual,
    /// Yes, as of that revision or a later one; then a bookmark tells their end, if bookmarks are
    /// wanted (a streaming list).
    Send,
    /// No: without a revision, only what happens from now on.
    Skip,
}

/// What to watch.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields.
    pub fields: FieldSelector,
    /// Changes after this revision; `None` first gives every object as added.
    pub after: Option<u64>,
    /// Whether the objects there are come first.
    pub initial: InitialEvents,
    /// Whether to send bookmarks.
    pub bookmarks: bool,
}

/// What happened to an object, seen through the selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It is there, or has begun to match.
    Added,
    /// It changed.
    Modified,
    /// It is gone, or no longer matches; the object is its last state, at the new revision.
    Deleted,
    /// Nothing happened; the object carries only how far the watch has come.
    Bookmark,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// What happened.
    pub kind: EventKind,
    /// To which object, in served form.
    pub object: Value,
}

/// An event before its object is read.
pub struct RawEvent {
    /// What happened.
    pub kind: EventKind,
    object: RawObject,
    definition: Arc<ResourceDefinition>,
}

enum RawObject {
    /// An object, and the revision at which its bytes were written.
    Stored(Stored, u64),
    Made(Value),
}

impl RawEvent {
    /// The event with its object as a tree.
    ///
    /// # Errors
    /// When the stored bytes are not what was once written.
    pub fn read(self) -> Result<WatchEvent, StatusError> {
        let object = match self.object {
            RawObject::Stored(stored, written) => {
                decode_written(&self.definition, &stored, written)?
            }
            RawObject::Made(object) => object,
        };
        Ok(WatchEvent { kind: self.kind, object })
    }

    /// Bytes of the object, about.
    pub fn bytes(&self) -> usize {
        match &self.object {
            RawObject::Stored(stored, _) => stored.value.len(),
            RawObject::Made(_) => 0,
        }
    }

    /// Appends the object's text to `out`.
    ///
    /// # Errors
    /// When the stored bytes are not what was once written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), StatusError> {
        match &self.object {
            RawObject::Stored(stored, written) => {
                write_served(&self.definition, stored, *written, out)
            }
            RawObject::Made(object) => write_value(object, out),
        }
    }
}

/// A running watch.
pub struct ObjectWatch {
    /// The objects to begin with, until they have been given out.
    initial: Option<Initial>,
    /// Whether the end of the initial events is still to be told.
    streaming: bool,
    live: store::Watch,
    selection: Selection,
    bookmarks: Option<tokio::time::Interval>,
    /// What was to be watched, as the caller named it.
    resource: String,
    definition: Arc<ResourceDefinition>,
    /// The kinds that are served, to see when this one is another or none.
    kinds: Receiver<Arc<Registry>>,
    /// The revision of the list that the initial events are.
    floor: u64,
}

impl Engine {
    /// Watches `resource` in one namespace or in all.
    ///
    /// # Errors
    /// 410 when the changes after that revision are no longer kept, 504 when it lies ahead, 400 for
    /// selectors that make no sense.
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
                let initial = Initial::begin(self, &definition, namespace, &selection).await?;
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
    /// The next event; waits for one. Dropping the future loses nothing.
    ///
    /// # Errors
    /// 410 when this watch fell too far behind, or the kind is not what it was, and it must be
    /// begun anew with a list.
    pub async fn next(&mut self) -> Result<WatchEvent, StatusError> {
        match self.next_raw().await? {
            Some(event) => event.read(),
            None => Err(StatusError::new(Reason::Expired, "the watched kind has changed")),
        }
    }

    /// As [`Self::next`], with the object unread; `None` when the kind is not what it was.
    ///
    /// # Errors
    /// As [`Self::next`].
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
                // What happened to objects comes before what happens to their kind.
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

    /// Lets go of what it has looked at ahead: its reader asks for nothing at the moment.
    pub fn rest(&mut self) {
        self.live.rest();
    }

    /// Bytes of objects this watch holds before they are asked for.
    #[cfg(test)]
    pub(in crate::engine) fn held(&self) -> usize {
        self.initial.as_ref().map_or(0, Initial::held) + self.live.held()
    }

    /// How far this watch has come, as an event: everything up to that revision has been given out.
    pub fn bookmark(&self) -> WatchEvent {
        let object = self.progress(self.live.revision().max(self.floor));
        WatchEvent { kind: EventKind::Bookmark, object }
    }

    /// As [`Self::bookmark`], unread.
    pub fn bookmark_raw(&self) -> RawEvent {
        let WatchEvent { kind, object } = self.bookmark();
        self.event(kind, RawObject::Made(object))
    }

    /// Whether a bookmark would be true now: initial objects still waiting come before it.
    pub fn is_caught_up(&self) -> bool {
        self.initial.as_ref().is_none_or(Initial::is_over) && !self.streaming
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

    /// What a change is to this watch, if anything.
    fn seen(&self, change: Change) -> Result<Option<(EventKind, RawObject)>, StatusError> {
        let Change { revision, key, kind } = change;
        let now = |stored: Stored| RawObject::Stored(stored, revision);
        // The last state that matched, as of now.
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

/// Waits until other kinds are served; for ever when nobody serves any more, which the store says
/// better.
async fn changed(kinds: &mut Receiver<Arc<Registry>>) {
    if kinds.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Waits for the time of a bookmark; for ever where none is wanted.
async fn due(bookmarks: &mut Option<tokio::time::Interval>) {
    match bookmarks {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
    }
}
