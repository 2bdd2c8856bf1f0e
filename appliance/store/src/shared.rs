//! State of an open store that its handles, watches and writer share.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use redb::Database;
use tokio::sync::watch;

use crate::hub::Hub;
use crate::vault::Vault;
use crate::{Error, FreeSpace};

/// State shared by readers, watches and the writer.
pub(crate) struct Shared {
    /// Path of the store's file.
    pub path: PathBuf,
    /// Lock that is held while a file is copied: two copies to one path would damage each other.
    pub copying: Mutex<()>,
    pub db: Database,
    pub vault: Vault,
    pub hub: Hub,
    pub commits: AtomicU64,
    pub writes: AtomicU64,
    /// Error of the first failed commit. Data in redb's memory may then be missing on disk.
    pub stopped: watch::Sender<Option<Arc<Error>>>,
    /// Free space as of the last commit.
    pub free_space: Mutex<FreeSpace>,
}
