//! Reduces the number of records for a medium that is read in thousands of small parts: a BMC that
//! mounts an ISO sends about 3000 requests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::events::shortened;
use crate::{FetchEvent, Observer};

/// Maximum media that are tracked at once. Beyond this number, the least recently recorded entry is
/// removed.
const MAX_MOUNTS: usize = 256;
/// Bytes after which the next record for the same medium is written.
const REPORT_EVERY: u64 = 8 << 20;

/// Records the first request for a medium, every failed request, and one total for every 8 MiB.
pub(super) struct Mounts {
    observer: Arc<dyn Observer>,
    unreported: Mutex<HashMap<(IpAddr, String), UnreportedReads>>,
}

struct UnreportedReads {
    since: Instant,
    bytes: u64,
}

impl Mounts {
    pub(super) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, unreported: Mutex::default() }
    }

    /// Counts a response of `bytes` bytes to a request that was received at `started`.
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
        self.observer.fetched(FetchEvent::Http { peer, path, bytes, millis, status });
    }

    /// Returns the start and the bytes of the record that is due now; `None` if none is due.
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
        let mut unreported = self.unreported.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (peer, path.to_owned());
        if let Some(mount) = unreported.get_mut(&key) {
            mount.bytes = mount.bytes.saturating_add(bytes);
            if mount.bytes < REPORT_EVERY {
                return None;
            }
            let due = (mount.since, mount.bytes);
            *mount = UnreportedReads { since: Instant::now(), bytes: 0 };
            return Some(due);
        }
        if unreported.len() >= MAX_MOUNTS {
            let quiet = unreported.iter().min_by_key(|(_, mount)| mount.since);
            if let Some(quiet) = quiet.map(|(key, _)| key.clone()) {
                unreported.remove(&quiet);
            }
        }
        unreported.insert(key, UnreportedReads { since: Instant::now(), bytes: 0 });
        Some((started, bytes))
    }
}
