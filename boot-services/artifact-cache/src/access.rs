//! Machines that may read a file of the cache.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Blob, Cache, RemoteFile};

/// Decides which machines may read a file. An image may hold secrets of one tenant of the rack.
pub trait Readers: Send + Sync + 'static {
    /// Returns true if the machine at `peer` needs the file.
    fn may_read(&self, peer: IpAddr, remote: &RemoteFile) -> bool;
}

/// A cache and the machines that may read its files. Cheap to clone.
#[derive(Clone)]
pub struct CacheAccess {
    cache: Cache,
    readers: Arc<dyn Readers>,
}

impl CacheAccess {
    /// Gives access to `cache` for the machines that `readers` allows.
    pub fn new(cache: Cache, readers: Arc<dyn Readers>) -> Self {
        Self { cache, readers }
    }

    /// Returns the underlying cache, without any check of readers.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns the offered file at a decoded path of [`RemoteFile::path`]'s form, if `peer` may
    /// read the file.
    pub fn offered(&self, path: &str, peer: IpAddr) -> Option<RemoteFile> {
        let remote = self.cache.offered(path)?;
        self.readers.may_read(peer, &remote).then_some(remote)
    }

    /// Returns the offered file if `peer` may read it and the cache has all of it. Blocks, because
    /// it reads files.
    pub fn get(&self, path: &str, peer: IpAddr) -> Option<Blob> {
        self.cache.get(&self.offered(path, peer)?)
    }
}
