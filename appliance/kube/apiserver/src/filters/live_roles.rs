//! Authorization with current roles: every role written before a request counts.

use std::sync::{Arc, PoisonError, RwLock};

use rbac::{Action, Decision, RBAC_GROUP, Roles, User};
use tokio::sync::Mutex;

use resources::StatusError;
use resources::engine::{Engine, EventKind, ObjectWatch, WatchEvent, WatchOptions};

/// Kinds of objects from which roles are computed.
const KINDS: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
/// Maximum full reads of the roles for one decision, in case the watches fall behind again.
const MAX_ATTEMPTS: usize = 3;

/// Index of roles, updated from watches on the store.
pub(crate) struct LiveRoles {
    engine: Engine,
    /// Last published roles; replaced as a whole on an update.
    roles: RwLock<Arc<Roles>>,
    feed: Mutex<Option<Feed>>,
}

/// State of the index update. Processed changes are stored here until they are published, because
/// the updating future may be dropped early.
struct Feed {
    revision: u64,
    changed: Option<Roles>,
    watches: Vec<(&'static str, ObjectWatch)>,
}

impl LiveRoles {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine, roles: RwLock::default(), feed: Mutex::new(None) }
    }

    /// Decides if `user` may do `action`, by the roles that are stored now.
    pub(crate) async fn authorize(
        &self,
        user: &User,
        action: &Action,
    ) -> Result<Decision, StatusError> {
        // Members of this group need no roles, and invalid roles must not lock them out.
        if user.is_in(rbac::MASTERS) {
            return Ok(Roles::default().authorize(user, action));
        }
        Ok(self.now().await?.authorize(user, action))
    }

    /// Returns the index with every role and binding written so far.
    pub(crate) async fn now(&self) -> Result<Arc<Roles>, StatusError> {
        let mut feed = self.feed.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let target = self.engine.revision();
            if feed.is_none() {
                *feed = Some(self.begin().await?);
            }
            let Some(live) = feed.as_mut() else { break };
            match self.follow(live, target).await {
                Ok(()) => return Ok(self.known()),
                Err(error) => {
                    tracing::info!(%error, "reading the index of roles again");
                    *feed = None;
                }
            }
        }
        let why = "Internal error occurred: cannot read the roles";
        Err(StatusError::new(resources::Reason::InternalError, why))
    }

    fn known(&self) -> Arc<Roles> {
        self.roles.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn begin(&self) -> Result<Feed, StatusError> {
        let mut watches = Vec::new();
        for plural in KINDS {
            let resource = format!("{RBAC_GROUP}/{plural}");
            // A registry without these kinds grants nothing.
            if self.engine.registry().by_id(&resource).is_none() {
                continue;
            }
            let watch = self.engine.watch(&resource, None, WatchOptions::default()).await?;
            watches.push((plural, watch));
        }
        self.publish(Roles::default());
        Ok(Feed { revision: 0, changed: None, watches })
    }

    fn publish(&self, roles: Roles) {
        *self.roles.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(roles);
    }

    /// Processes every change of roles up to the store revision `target`.
    async fn follow(&self, feed: &mut Feed, target: u64) -> Result<(), StatusError> {
        if feed.revision >= target && target > 0 {
            return Ok(());
        }
        let changed = &mut feed.changed;
        for (plural, watch) in &mut feed.watches {
            while !(watch.is_caught_up() && reached(watch) >= target) {
                // Each poll reads pending changes. The watch's revision advances even if no change
                // matches.
                let event = tokio::select! {
                    biased;
                    event = watch.next() => event?,
                    () = tokio::task::yield_now() => continue,
                };
                let roles = changed.get_or_insert_with(|| Roles::clone(&self.known()));
                take_in(roles, plural, &event);
            }
        }
        if let Some(roles) = feed.changed.take() {
            self.publish(roles);
        }
        feed.revision = target;
        Ok(())
    }
}

/// Decides for callers outside the API, such as the pages, by the roles that are stored now.
#[derive(Clone)]
pub struct Authorizer(Arc<LiveRoles>);

impl Authorizer {
    /// Creates an authorizer with the roles in the store of `engine`.
    pub fn new(engine: Engine) -> Self {
        Self(Arc::new(LiveRoles::new(engine)))
    }

    /// Returns for each action if `user` may do it. Returns false for all if the roles cannot be
    /// read, except for members of [`rbac::MASTERS`].
    pub async fn allowed(&self, user: &User, actions: &[Action]) -> Vec<bool> {
        if user.is_in(rbac::MASTERS) {
            return vec![true; actions.len()];
        }
        let roles = match self.0.now().await {
            Ok(roles) => roles,
            Err(error) => {
                tracing::warn!(%error, user = user.name, "a request of a page is refused");
                Arc::default()
            }
        };
        actions.iter().map(|action| roles.authorize(user, action).allowed).collect()
    }
}

fn reached(watch: &ObjectWatch) -> u64 {
    let bookmark = watch.bookmark();
    let revision = bookmark.object["metadata"]["resourceVersion"].as_str();
    revision.and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

fn take_in(roles: &mut Roles, plural: &str, event: &WatchEvent) {
    match event.kind {
        EventKind::Added | EventKind::Modified => roles.put(plural, &event.object),
        EventKind::Deleted => {
            let text = |field: &str| event.object["metadata"][field].as_str().unwrap_or_default();
            roles.remove(plural, text("namespace"), text("name"));
        }
        EventKind::Bookmark => {}
    }
}

#[cfg(test)]
mod tests;
