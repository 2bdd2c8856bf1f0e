//! Watching: what changed, as the watcher's selectors see it.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use store::{Change, ChangeKind};

use super::object::{decode, decode_at};
use super::{Engine, ListOptions, failed};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::StatusError;

/// How often a watch that asked for it is told how far it has come.
pub const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// What to watch.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields.
    pub fields: FieldSelector,
    /// Changes after this revision; `None` first gives every object as added.
    pub after: Option<u64>,
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

/// A running watch.
pub struct ObjectWatch {
    initial: VecDeque<Value>,
    live: store::Watch,
    labels: LabelSelector,
    fields: FieldSelector,
    bookmarks: Option<tokio::time::Interval>,
    api_version: String,
    kind: String,
    /// The last revision handed out in an initial event's place: the list's.
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
        let definition =
            self.registry().by_id(resource).ok_or_else(StatusError::no_such_resource)?.clone();
        options.fields.check(&definition)?;
        let (after, initial) = match options.after {
            Some(after) => (after, VecDeque::new()),
            None => {
                let (labels, fields) = (options.labels.clone(), options.fields.clone());
                let wanted = ListOptions { labels, fields, ..ListOptions::default() };
                let list = self.list(resource, namespace, wanted).await?;
                (list.revision, list.items.into())
            }
        };
        let live = self
            .inner
            .store
            .watch(resource, namespace, after)
            .map_err(|error| failed("watch objects", &error))?;
        let bookmarks = options.bookmarks.then(|| {
            let first = tokio::time::Instant::now() + BOOKMARK_EVERY;
            tokio::time::interval_at(first, BOOKMARK_EVERY)
        });
        Ok(ObjectWatch {
            initial,
            live,
            labels: options.labels,
            fields: options.fields,
            bookmarks,
            api_version: definition.api_version(),
            kind: definition.kind.clone(),
            floor: after,
        })
    }
}

impl ObjectWatch {
    /// The next event; waits for one. Dropping the future loses nothing.
    ///
    /// # Errors
    /// 410 when this watch fell too far behind, and must be begun anew with a list.
    pub async fn next(&mut self) -> Result<WatchEvent, StatusError> {
        if let Some(object) = self.initial.pop_front() {
            return Ok(WatchEvent { kind: EventKind::Added, object });
        }
        loop {
            let change = match &mut self.bookmarks {
                None => self.live.next().await,
                Some(interval) => tokio::select! {
                    biased;
                    change = self.live.next() => change,
                    _ = interval.tick() => return Ok(self.bookmark()),
                },
            };
            let change = change.map_err(|error| failed("watch objects", &error))?;
            if let Some(event) = self.seen(&change)? {
                return Ok(event);
            }
        }
    }

    /// How far this watch has come, as an event: everything up to that revision has been given out.
    pub fn bookmark(&self) -> WatchEvent {
        let revision = self.live.revision().max(self.floor);
        let object = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": { "resourceVersion": revision.to_string() },
        });
        WatchEvent { kind: EventKind::Bookmark, object }
    }

    /// Whether a bookmark would be true now: initial objects still waiting come before it.
    pub fn is_caught_up(&self) -> bool {
        self.initial.is_empty()
    }

    fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    fn seen(&self, change: &Change) -> Result<Option<WatchEvent>, StatusError> {
        let revision = change.revision;
        let (kind, object) = match &change.kind {
            ChangeKind::Put { value, previous } => {
                let object = decode_at(value, revision)?;
                let before = previous.as_ref().map(decode).transpose()?;
                let before = before.filter(|before| self.matches(before));
                match (before, self.matches(&object)) {
                    (None, true) => (EventKind::Added, object),
                    (Some(_), true) => (EventKind::Modified, object),
                    (Some(_), false) => (EventKind::Deleted, object),
                    (None, false) => return Ok(None),
                }
            }
            ChangeKind::Delete { previous } => {
                let object = decode_at(&previous.value, revision)?;
                if !self.matches(&object) {
                    return Ok(None);
                }
                (EventKind::Deleted, object)
            }
        };
        Ok(Some(WatchEvent { kind, object }))
    }
}
