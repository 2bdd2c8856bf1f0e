//! Slots for downloads: a few in total and fewer for each host, so that a slow server leaves slots
//! to other servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum concurrent downloads; further ones wait for a slot.
const MAX_DOWNLOADS: usize = 4;
/// Maximum concurrent downloads from one host, over all its ports.
const MAX_OF_HOST: usize = 2;

/// Semaphores for the slots of all downloads.
pub(crate) struct DownloadSlots {
    all: Arc<Semaphore>,
    /// Semaphores of hosts with running or waiting downloads; unused ones are removed at the next
    /// download.
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// Slot of one download; dropping it frees the slot.
pub(crate) struct Slot {
    _all: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
}

impl DownloadSlots {
    pub(crate) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_DOWNLOADS)), hosts: Mutex::default() }
    }

    /// Waits for a slot to download `url`. `None` never occurs: the semaphores are not closed.
    pub(crate) async fn acquire(&self, url: &str) -> Option<Slot> {
        // The host is first: a download that waits for its host takes no slot of another host.
        let host = self.of_host(host(url)).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Slot { _all: all, _host: host })
    }

    fn of_host(&self, host: String) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|_, slots| Arc::strong_count(slots) > 1);
        let slots = hosts.entry(host).or_insert_with(|| Arc::new(Semaphore::new(MAX_OF_HOST)));
        Arc::clone(slots)
    }
}

/// Returns the host of a URL, without user and port.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    host.get(..end).unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn a_host_is_one_whatever_its_port_and_user() {
        for (url, expected) in [
            ("http://A.example:81/x", "a.example"),
            ("https://me:pw@a.example?x=@b", "a.example"),
            ("oci://[2001:db8::1]:5000/a:b", "[2001:db8::1]"),
            ("oci-blob://ghcr.io/a/b@sha256:00", "ghcr.io"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
