//! Garbage collector: deletes objects whose owners are gone, empties terminating namespaces,
//! creates default objects of namespaces, and deletes expired records.
//!
//! One task reads every change and keeps an index of owners. A change results in [`Work`] items,
//! which are small concurrent transactions, so that no writer waits long. The index is only in
//! memory: at each start, all objects are read once.

mod expiry;
mod graph;
mod head;
mod namespaces;
mod queue;
mod sweep;
mod verdict;

use std::collections::BTreeSet;
use std::mem;
use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use store::{Change, ChangeKind, Key, Stored, Walk, Watch};
use tokio::time::Instant;

use self::expiry::Expiries;
use self::graph::Graph;
use self::head::{Head, Owner};
use self::queue::Queue;
use self::sweep::owner_key;
use super::Engine;
use crate::status_error::{StatusError, failed};

/// Maximum concurrent work items, which can share commits.
const AT_ONCE: usize = 16;
/// Delay after a failure before all objects are read again.
const RETRY: Duration = Duration::from_secs(5);
/// Interval of the checks for expired records, and for new kinds that owned objects may refer to.
const TICK: Duration = Duration::from_secs(30);

/// Work item of the collector; each variant contains the object or namespace to process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Object to delete if its owners are gone.
    Dependent(Key),
    /// Owner in foreground deletion, to remove after its dependents are deleted.
    Foreground(Key),
    /// Owner in orphaning deletion, to remove after its dependents no longer refer to it.
    Orphaning(Key),
    /// Terminating namespace, whose objects are to be deleted.
    Ending(String),
    /// Active namespace, which may lack default objects.
    Beginning(String),
}

/// Task that does the garbage collection; run with [`Self::run`].
pub struct Collector {
    engine: Engine,
    /// Default objects of every namespace, each with its resource.
    defaults: Vec<(String, Value)>,
    graph: Graph,
    /// Revision of the last processed change. Objects read by [`Self::survey`] may be newer.
    seen: u64,
    expiries: Expiries,
    /// Terminating namespaces, in which the change of an object queues [`Work::Ending`].
    ending: BTreeSet<String>,
    /// True to wait before a terminating namespace is emptied; see [`Self::hesitating`].
    hesitates: bool,
    queue: Queue,
    /// Generation of the registry at which all owned objects were last queued.
    generation: u64,
}

impl Collector {
    /// Makes a collector for `engine`. `defaults` are objects to create in every namespace, each
    /// with its resource (`/serviceaccounts`).
    pub fn new(engine: Engine, defaults: Vec<(String, Value)>) -> Self {
        Self {
            engine,
            defaults,
            graph: Graph::default(),
            seen: 0,
            expiries: Expiries::default(),
            ending: BTreeSet::new(),
            hesitates: false,
            queue: Queue::default(),
            generation: 0,
        }
    }

    /// Makes the collector wait five seconds before it empties a terminating namespace, as upstream
    /// does (`namespaceDeletionGracePeriod`). Some clients remove the namespace's finalizer
    /// themselves and fail if the finalizer is already gone.
    #[must_use]
    pub fn hesitating(mut self) -> Self {
        self.hesitates = true;
        self
    }

    /// Runs the collector until `shutdown` resolves.
    pub async fn run(mut self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let ended = tokio::select! {
                biased;
                () = &mut shutdown => return,
                ended = self.follow() => ended,
            };
            if let Err(error) = ended {
                tracing::warn!(error = %error, "garbage collection starts again");
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    /// Reads all objects once, then processes changes and due work until an error.
    async fn follow(&mut self) -> Result<(), StatusError> {
        let mut watch = self.survey().await?;
        let mut tick = tokio::time::interval(TICK);
        loop {
            let due = self.queue.due();
            // Changes may arrive without a pause, so this branch is last.
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() =>
                {
                    self.work().await;
                }
                _ = tick.tick() => self.tick().await?,
                change = watch.next() => {
                    self.take_in(change.map_err(|error| failed("follow changes", &error))?);
                }
            }
        }
    }

    /// Rebuilds the index from all stored objects. Returns a watch of the later changes.
    pub(super) async fn survey(&mut self) -> Result<Watch, StatusError> {
        let engine = self.engine.clone();
        let revision = engine.revision();
        let watch = engine.inner.store.watch_all(revision);
        let watch = watch.map_err(|error| failed("follow changes", &error))?;
        (self.graph, self.expiries) = (Graph::default(), mem::take(&mut self.expiries).again());
        (self.ending, self.queue) = (BTreeSet::new(), Queue::default());
        self.seen = revision;
        self.generation = engine.registry().generation();
        for definition in engine.registry().resources().iter() {
            let (engine, resource) = (engine.clone(), definition.id());
            let read = tokio::task::spawn_blocking(move || {
                let mut found = Vec::new();
                let walk = Walk { resource: &resource, ..Walk::default() };
                let walked = engine.inner.store.walk(walk, |key, stored| {
                    if let Some(head) = Head::read(&stored.value) {
                        found.push((key, stored.revision, head));
                    }
                    ControlFlow::Continue(())
                });
                walked.map(|_| found).map_err(|error| failed("read every object", &error))
            });
            let found =
                read.await.map_err(|error| StatusError::internal("cannot read objects", &error))?;
            for (key, revision, head) in found? {
                self.put(key, revision, &head, true);
            }
        }
        self.expiries.surveyed();
        Ok(watch)
    }

    pub(super) fn take_in(&mut self, change: Change) {
        let Change { revision, key, kind } = change;
        self.seen = revision;
        match kind {
            ChangeKind::Put { value, .. } => {
                if let Some(head) = Head::read(&value) {
                    self.put(key, revision, &head, false);
                }
            }
            ChangeKind::Delete { previous } => {
                let head = Head::read(&previous.value).unwrap_or_default();
                self.gone(&key, &head);
            }
        }
    }

    fn put(&mut self, key: Key, revision: u64, head: &Head, surveyed: bool) {
        let registry = self.engine.registry();
        let Some(definition) = registry.by_id(&key.resource) else { return };
        if let Some(lives) = definition.time_to_live {
            let (now, steady) = (self.engine.clock().now(), self.engine.clock().steady());
            let written = head.written().filter(|_| surveyed).unwrap_or(now);
            let age = Duration::try_from(now.duration_since(written)).unwrap_or_default();
            self.expiries.put(&key, revision, steady + lives.saturating_sub(age));
        }
        let before = self.graph.put(&key, head);
        if before != head.owner_references {
            self.push(Work::Dependent(key.clone()));
            // Owners that wait for this object may now be deletable.
            self.wake_owners(&key.namespace, &before);
        }
        if head.is_deleting() && !head.waits_for_dependents() && !head.orphans_dependents() {
            self.wake_owners(&key.namespace, &head.owner_references);
        }
        if definition.is_namespace {
            if head.is_deleting() {
                let work = Work::Ending(key.name.clone());
                if self.ending.insert(key.name.clone()) && self.hesitates {
                    self.queue.put_aside(work, Instant::now());
                } else {
                    self.push(work);
                }
            } else {
                self.push(Work::Beginning(key.name.clone()));
            }
        }
        if self.ending.contains(&key.namespace) {
            self.push(Work::Ending(key.namespace.clone()));
        }
        if head.waits_for_dependents() {
            self.wake_dependents(&head.uid);
            self.push(Work::Foreground(key));
        } else if head.orphans_dependents() {
            self.push(Work::Orphaning(key));
        }
    }

    fn gone(&mut self, key: &Key, head: &Head) {
        let owners = self.graph.remove(key);
        self.graph.lose(&head.uid);
        self.wake_owners(&key.namespace, &owners);
        self.wake_dependents(&head.uid);
        let registry = self.engine.registry();
        if registry.by_id(&key.resource).is_some_and(|one| one.is_namespace) {
            self.ending.remove(&key.name);
        } else if self.ending.contains(&key.namespace) {
            self.push(Work::Ending(key.namespace.clone()));
        } else if self.defaults.iter().any(|(resource, object)| {
            *resource == key.resource && object["metadata"]["name"] == *key.name
        }) {
            self.push(Work::Beginning(key.namespace.clone()));
        }
    }

    fn wake_owners(&mut self, namespace: &str, owners: &[Owner]) {
        let registry = self.engine.registry();
        for key in owners.iter().filter_map(|owner| owner_key(&registry, namespace, owner)) {
            self.push(Work::Foreground(key));
        }
    }

    fn wake_dependents(&mut self, owner: &str) {
        let now = Instant::now();
        for dependent in self.graph.dependents(owner) {
            self.queue.push(Work::Dependent(dependent.clone()), now);
        }
    }

    async fn tick(&mut self) -> Result<(), StatusError> {
        let generation = self.engine.registry().generation();
        if self.generation != generation {
            self.generation = generation;
            for owned in self.graph.owned() {
                self.queue.push(Work::Dependent(owned.clone()), Instant::now());
            }
        }
        for (key, revision) in self.expiries.due(self.engine.clock().steady()) {
            self.engine.expire(key, revision).await?;
        }
        Ok(())
    }

    fn push(&mut self, work: Work) {
        self.queue.push(work, Instant::now());
    }

    /// Processes a batch of due work items. A failed item is retried after five seconds.
    async fn work(&mut self) {
        let batch = self.queue.take(Instant::now());
        let this = &*self;
        let done = batch.into_iter().map(|work| async move {
            let again = this.one(&work).await;
            (work, again)
        });
        let done: Vec<_> = done.collect();
        let done: Vec<_> = stream::iter(done).buffer_unordered(AT_ONCE).collect().await;
        for (work, again) in done {
            match again {
                Ok(false) => {}
                Ok(true) => self.push(work),
                Err(error) => {
                    tracing::warn!(?work, error = %error, "cannot collect");
                    self.queue.put_aside(work, Instant::now());
                }
            }
        }
        self.queue.gather(Instant::now());
    }

    /// Processes one work item. Returns true if the item must be queued again at once.
    pub(super) async fn one(&self, work: &Work) -> Result<bool, StatusError> {
        let engine = &self.engine;
        match work {
            Work::Dependent(key) => {
                let dependents = self.dependents_of(key)?;
                let lost = self.graph.lost(key);
                engine.collect_dependent(key.clone(), dependents, lost).await?;
                Ok(false)
            }
            Work::Foreground(key) => {
                let Some(uid) = self.settled(key)? else { return Ok(false) };
                let dependents = self.graph.dependents(&uid).cloned().collect();
                engine.release_foreground(key.clone(), dependents).await?;
                Ok(false)
            }
            Work::Orphaning(key) => {
                let Some(uid) = self.settled(key)? else { return Ok(false) };
                let dependents: Vec<Key> = self.graph.dependents(&uid).cloned().collect();
                let orphans = dependents.into_iter().map(|one| engine.orphan(one, uid.clone()));
                let orphans: Vec<_> = orphans.collect();
                let mut orphans = stream::iter(orphans).buffer_unordered(AT_ONCE);
                while let Some(orphaned) = orphans.next().await {
                    orphaned?;
                }
                engine.release_orphaning(key.clone()).await?;
                Ok(false)
            }
            Work::Ending(name) => engine.empty_namespace(name).await,
            Work::Beginning(name) => {
                engine.furnish(name, &self.defaults).await?;
                Ok(false)
            }
        }
    }

    /// Returns the uid of the owner `key` if its last change was processed, so that its dependents
    /// are known. Otherwise `None`: the pending change queues the same work again.
    fn settled(&self, key: &Key) -> Result<Option<String>, StatusError> {
        let found = self.find(key)?.filter(|(revision, _)| *revision <= self.seen);
        Ok(found.map(|(_, uid)| uid))
    }

    /// Returns revision and uid of a stored object; `None` if the object does not exist.
    fn find(&self, key: &Key) -> Result<Option<(u64, String)>, StatusError> {
        let stored = self.engine.inner.store.get(key);
        let stored = stored.map_err(|error| failed("read an object", &error))?;
        let uid = |stored: &Stored| Head::read(&stored.value).map(|head| head.uid);
        Ok(stored.and_then(|stored| uid(&stored).map(|uid| (stored.revision, uid))))
    }

    fn dependents_of(&self, key: &Key) -> Result<Vec<Key>, StatusError> {
        let uid = self.find(key)?.map(|(_, uid)| uid);
        Ok(uid.map(|uid| self.graph.dependents(&uid).cloned().collect()).unwrap_or_default())
    }
}
