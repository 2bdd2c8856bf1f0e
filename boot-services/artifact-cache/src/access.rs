//! Access control: the machines that may read a file of the cache.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Blob, Cache, RemoteFile};

/// Decides which machines may read a file: an image may have secrets of one tenant of the rack.
pub trait Readers: Send + Sync + 'static {
    /// Returns true if the machine at `peer` needs the file.
    fn may_read(&self, peer: IpAddr, remote: &RemoteFile) -> bool;
}

/// Cache with access control. Cheap to clone.
#[derive(Clone)]
pub struct CacheAccess {
    cache: Cache,
    readers: Arc<dyn Readers>,
}

impl CacheAccess {
    /// Creates access to `cache` for the machines that `readers` allows.
    pub fn new(cache: Cache, readers: Arc<dyn Readers>) -> Self {
        Self { cache, readers }
    }

    /// Returns the underlying cache, without any check of readers.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns the offered file at `path`, if `peer` may read it. `path` is `/cache/<key>/<path>`,
    /// percent-decoded.
    pub fn offered(&self, path: &str, peer: IpAddr) -> Option<RemoteFile> {
        let remote = self.cache.offered(path)?;
        self.readers.may_read(peer, &remote).then_some(remote)
    }

    /// Returns the offered file at `path` if the cache has all of it and `peer` may read it.
    /// Blocks, because it reads files.
    pub fn get(&self, path: &str, peer: IpAddr) -> Option<Blob> {
        self.cache.get(&self.offered(path, peer)?)
    }
}
