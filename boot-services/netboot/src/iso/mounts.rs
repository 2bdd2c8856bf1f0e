//! What is told of a medium that is read in thousands of small pieces: a BMC that mounts an ISO
//! asks some 3000 times.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::seen::shortened;
use crate::{Fetched, Observer};

/// Media that are read at once; of further ones each request is told.
const MAX_MOUNTS: usize = 256;
/// A medium is told of again after so many bytes.
const TOLD_EVERY: u64 = 8 << 20;

/// Tells the observer of the first request for a medium, of those that failed, and then of every
/// eight megabytes together.
pub(super) struct Mounts {
    observer: Arc<dyn Observer>,
    untold: Mutex<HashMap<(IpAddr, String), Untold>>,
}

struct Untold {
    since: Instant,
    bytes: u64,
}

impl Mounts {
    pub(super) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, untold: Mutex::default() }
    }

    /// An answer to a request that came at `started` ended after `bytes`.
    pub(super) fn ended(
        &self,
        peer: IpAddr,
        path: &str,
        status: u16,
        bytes: u64,
        started: Instant,
    ) {
        let path = shortened(path);
        let Some((since, bytes)) = self.due(peer, &path, status, bytes, started) else { return };
        let millis = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.observer.fetched(Fetched::Http { peer, path, bytes, millis, status });
    }

    /// From when on and how many bytes are to be told now, if any.
    fn due(
        &self,
        peer: IpAddr,
        path: &str,
        status: u16,
        bytes: u64,
        started: Instant,
    ) -> Option<(Instant, u64)> {
        if status >= 400 {
            return Some((started, bytes));
        }
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (peer, path.to_owned());
        if let Some(mount) = untold.get_mut(&key) {
            mount.bytes = mount.bytes.saturating_add(bytes);
            if mount.bytes < TOLD_EVERY {
                return None;
            }
            let due = (mount.since, mount.bytes);
            *mount = Untold { since: Instant::now(), bytes: 0 };
            return Some(due);
        }
        if untold.len() >= MAX_MOUNTS {
            let quiet = untold.iter().min_by_key(|(_, mount)| mount.since);
            if let Some(quiet) = quiet.map(|(key, _)| key.clone()) {
                untold.remove(&quiet);
            }
        }
        untold.insert(key, Untold { since: Instant::now(), bytes: 0 });
        Some((started, bytes))
    }
}
