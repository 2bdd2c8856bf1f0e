//! Check that an API server is still the one of the same cluster.

use std::time::Duration;

use api::meta::Resource;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::management::discovery::cluster_uid;
use crate::remote::{RemoteObjects, WatchState};

/// Wait after a failed attempt to read the ID.
const RETRY: Duration = Duration::from_secs(15);

/// Check of the cluster's ID after each reconnection of a watch: the address of an API server may
/// have passed to another cluster during an outage.
#[derive(Default)]
pub struct IdCheck {
    /// Start of the newest watch at the last successful check.
    checked: Option<Timestamp>,
    tried: Option<Instant>,
}

impl IdCheck {
    /// Reads the ID if a watch was connected again. Returns true if it is not `own`.
    pub async fn finds_another(
        &mut self,
        remote: &RemoteObjects,
        own: &str,
        states: &[(Resource, WatchState)],
    ) -> bool {
        let newest = states.iter().filter_map(|(_, state)| state.connected_since).max();
        let is_due = self.tried.is_none_or(|at| at.elapsed() >= RETRY);
        if newest.is_none() || newest == self.checked || !is_due {
            return false;
        }
        match cluster_uid(remote).await {
            Ok(uid) => {
                (self.checked, self.tried) = (newest, None);
                uid != own
            }
            Err(_) => {
                self.tried = Some(Instant::now());
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use api::infrastructure::cluster_api::MACHINE;
    use jiff::Timestamp;
    use serde_json::json;

    use super::{IdCheck, RETRY};
    use crate::remote::WatchState;
    use crate::remote::tests::{json_reply, remote, status};

    #[tokio::test(start_paused = true)]
    async fn another_cluster_is_found_after_each_reconnection() {
        let namespace = |uid: &str| json!({ "metadata": { "name": "kube-system", "uid": uid } });
        // Responses in turn: the same cluster, a lost right, another cluster.
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let (remote, _events) = remote(move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0 => json_reply(200, &namespace("c1")),
            1 => json_reply(403, &status(403, "Forbidden")),
            _ => json_reply(200, &namespace("c2")),
        });
        let connected = |second: Option<i64>| {
            let connected_since = second.map(|it| Timestamp::from_second(it).unwrap());
            [(MACHINE, WatchState { connected_since, ..WatchState::default() })]
        };
        let mut check = IdCheck::default();
        for (since, wait, is_another, sent) in [
            (None, false, false, 0),
            (Some(1), false, false, 1),
            (Some(1), true, false, 1),
            (Some(2), false, false, 2),
            (Some(2), false, false, 2),
            (Some(2), true, true, 3),
        ] {
            if wait {
                tokio::time::advance(RETRY).await;
            }
            let found = check.finds_another(&remote, "c1", &connected(since)).await;
            assert_eq!((found, requests.load(Ordering::SeqCst)), (is_another, sent), "{since:?}");
        }
    }
}
