//! Options of a store.

use std::sync::Arc;
use std::time::Duration;

use crate::free_space::{SystemVolume, Volume};
use crate::vault::{SealingKey, Vault};

/// Options of a store: limits of the history, the volume and the vault.
#[derive(Clone)]
pub struct Options {
    /// Maximum number of changes in the log.
    pub log_entries: u64,
    /// Maximum size of the log in bytes.
    pub log_bytes: u64,
    /// Age after which a change leaves the log, so that deleted secrets do not stay in it.
    pub log_age: Duration,
    /// Wall clock of the box; used only for the time of log entries.
    pub clock: Arc<dyn stdx::Clock>,
    /// Key that encrypts the values of `sealed` resources. A store with encrypted values opens only
    /// with the same key.
    pub sealing_key: Option<SealingKey>,
    /// Size in bytes of the file `PATH.reserve`, which is removed when the disk is full, so that
    /// objects can still be deleted. Zero: no reserve file.
    pub reserve: u64,
    /// Volume that measures the free space of the disk.
    pub volume: Arc<dyn Volume>,
    /// Resources whose values are encrypted on disk at their next write, named as in
    /// [`crate::Key::resource`].
    pub sealed: Vec<String>,
}

impl Options {
    pub(crate) fn vault(&self) -> Vault {
        Vault { key: self.sealing_key.clone(), resources: self.sealed.clone() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log_entries: 10_000,
            log_bytes: 64 * 1024 * 1024,
            log_age: Duration::from_secs(24 * 60 * 60),
            clock: Arc::new(stdx::SystemClock),
            sealing_key: None,
            reserve: 0,
            volume: Arc::new(SystemVolume),
            sealed: Vec::new(),
        }
    }
}
