//! State of a watch, for status pages, and the reading side of its copy.

use std::sync::Arc;
use std::time::Duration;

use api::meta::{ObjectKey, Resource};
use jiff::Timestamp;
use objects::ObjectError;
use serde_json::Value;
use stdx::Hint as _;
use tokio::sync::watch;

use super::copy::Copy;
use crate::remote::list::Scope;

/// State of a watch. The default is the state before the first list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchState {
    /// Time since which the watch works; `None` while it does not.
    pub connected_since: Option<Timestamp>,
    /// Time of the last complete list; the objects are at least as new.
    pub listed_at: Option<Timestamp>,
    /// Last error; kept after the watch works again.
    pub last_error: Option<WatchError>,
    /// Time of the next attempt; `None` while the watch works.
    pub next_try: Option<Timestamp>,
    /// Attempts without success since the watch last worked.
    pub failures: u32,
    /// Number of objects in the copy.
    pub objects: usize,
}

/// Error of a list or a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchError {
    /// Time of the error.
    pub at: Timestamp,
    /// Error with its causes.
    pub text: String,
    /// Advice for the person who reads the error.
    pub hint: Option<String>,
}

impl WatchState {
    pub(super) fn connect(&mut self, now: Timestamp) {
        self.connected_since = Some(now);
        self.next_try = None;
        self.failures = 0;
    }

    pub(super) fn fail(&mut self, now: Timestamp, error: &ObjectError, wait: Duration) {
        self.connected_since = None;
        self.next_try = now.checked_add(wait).ok();
        self.failures = self.failures.saturating_add(1);
        let hint = error.hint().map(str::to_owned);
        self.last_error = Some(WatchError { at: now, text: stdx::chain(error), hint });
    }
}

/// Reading side of a watcher; clones read the same copy.
#[derive(Clone)]
pub struct WatchedObjects {
    scope: Scope,
    copy: Arc<Copy>,
    state: watch::Receiver<WatchState>,
}

impl WatchedObjects {
    pub(super) fn new(scope: Scope, copy: Arc<Copy>, state: watch::Receiver<WatchState>) -> Self {
        Self { scope, copy, state }
    }

    /// Returns the watched kind.
    pub fn resource(&self) -> Resource {
        self.scope.resource
    }

    /// Returns an object while the watch works: at least as new as each response to the box about
    /// this object. `None` says nothing about the object; the server must be asked.
    pub fn current(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        if self.is_current() { self.copy.get(key) } else { None }
    }

    /// Returns all objects of a namespace, or of all for `None`, while the watch works and has all
    /// of them. `None` says nothing; the server must be asked.
    pub fn all_current(&self, namespace: Option<&str>) -> Option<Vec<Arc<Value>>> {
        let Scope { namespace: own, labels, .. } = &self.scope;
        let has_all = labels.is_empty() && (own.is_empty() || namespace == Some(own));
        if !has_all || !self.is_current() {
            return None;
        }
        let is_in =
            |object: &Arc<Value>| namespace.is_none_or(|it| object["metadata"]["namespace"] == *it);
        Some(self.copy.all().into_iter().filter(is_in).collect())
    }

    /// Uses the object of a response until the watch is as new.
    pub fn answered(&self, object: &Value) {
        self.copy.answered(object);
    }

    fn is_current(&self) -> bool {
        self.state.borrow().connected_since.is_some() && self.copy.is_ordered()
    }

    /// Returns the last known state of an object. `None` does not prove that the object is gone:
    /// the first list may not be complete, see [`WatchState::listed_at`].
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.copy.get(key)
    }

    /// Returns all objects, ordered by key.
    pub fn all(&self) -> Vec<Arc<Value>> {
        self.copy.all()
    }

    /// Returns the state of the watch.
    pub fn state(&self) -> WatchState {
        self.state.borrow().clone()
    }

    /// Waits until the state of the watch fulfills `condition`, and returns this state. Returns
    /// `None` if the watcher has ended.
    pub async fn wait_until(
        &self,
        condition: impl FnMut(&WatchState) -> bool,
    ) -> Option<WatchState> {
        let mut state = self.state.clone();
        let found = state.wait_for(condition).await;
        found.ok().map(|state| state.clone())
    }
}
