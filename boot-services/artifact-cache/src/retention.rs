//! Retention: files that stay in the cache, files that are evicted, and files that clients may
//! request by key.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::eviction::{self, AbandonedPart, CachedFile, Space};
use super::layout::Layout;
use super::{Cache, Digest, RemoteFile};
use crate::Error;

/// Reason why a file is not removed from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// The file is not in the cache.
    #[error("the file does not exist in the cache")]
    Missing,
    /// The owner has pinned the file.
    #[error("it is pinned")]
    Pinned,
    /// The file is offered, because a workflow will need it.
    #[error("a workflow needs it")]
    Needed,
    /// A machine is reading the file.
    #[error("a machine is reading it now")]
    InUse,
}

impl Cache {
    /// Offers files that a workflow will need: clients may request them by key
    /// ([`RemoteFile::path`]), and they are never evicted. Offers are counted; a file is offered
    /// until each offer is withdrawn.
    pub fn offer<'a>(&self, files: impl IntoIterator<Item = &'a RemoteFile>) {
        self.table(|table| {
            for file in files {
                let offered = table.offered.entry(file.key());
                offered.or_insert_with(|| (file.clone(), 0)).1 += 1;
            }
        });
    }

    /// Withdraws one offer of each file, because a workflow does not need it any more.
    pub fn withdraw<'a>(&self, files: impl IntoIterator<Item = &'a RemoteFile>) {
        self.table(|table| {
            for key in files.into_iter().map(RemoteFile::key) {
                let Some((_, number)) = table.offered.get_mut(&key) else { continue };
                *number -= 1;
                if *number == 0 {
                    table.offered.remove(&key);
                }
            }
        });
    }

    /// Returns the offered file at a decoded path of [`RemoteFile::path`]'s form. The path is only
    /// a key of the table of offers and never reaches the file system.
    pub(crate) fn offered(&self, path: &str) -> Option<RemoteFile> {
        let (key, name) = super::read_path(path)?;
        let (offered, _) = self.table(|table| table.offered.get(key).cloned())?;
        offered.is_named(name).then_some(offered)
    }

    /// Replaces the set of files that are never evicted because the owner pinned them.
    pub fn pin(&self, digests: BTreeSet<Digest>) {
        self.table(|table| table.pinned = digests);
    }

    /// Returns the digest of the file; `None` if the cache does not have it. Unlike [`Cache::get`]
    /// this is not a use of the file. Blocks, because it reads files.
    pub fn digest(&self, remote: &RemoteFile) -> Option<Digest> {
        let digest = self.0.layout.digest(remote)?;
        self.0.layout.blob(digest).exists().then_some(digest)
    }

    /// Returns all complete files in the order of eviction; files that must stay are last. Blocks,
    /// because it reads folders.
    pub fn list(&self) -> Vec<CachedFile> {
        let mut files = self.0.layout.list();
        let offered: Vec<RemoteFile> =
            self.table(|table| table.offered.values().map(|(remote, _)| remote.clone()).collect());
        let needed: BTreeSet<Digest> =
            offered.iter().filter_map(|remote| self.0.layout.digest(remote)).collect();
        self.table(|table| {
            table.leases.retain(|_, lease| Arc::strong_count(lease) > 1);
            for file in &mut files {
                file.in_use = table.leases.contains_key(&file.digest);
                file.needed = needed.contains(&file.digest);
                file.pinned = table.pinned.contains(&file.digest);
            }
        });
        files.sort_by_key(|file| (!file.may_go(), file.last_used));
        files
    }

    /// Removes a file from the cache. Blocks, because it reads folders.
    ///
    /// # Errors
    /// The file is missing, or must not be removed ([`RemoveError`]).
    pub fn remove(&self, digest: Digest) -> Result<(), RemoveError> {
        let files = self.list();
        match files.iter().find(|file| file.digest == digest) {
            None => Err(RemoveError::Missing),
            Some(file) if file.pinned => Err(RemoveError::Pinned),
            Some(file) if file.needed => Err(RemoveError::Needed),
            Some(file) if file.in_use => Err(RemoveError::InUse),
            Some(_) => {
                self.0.layout.remove(&[digest]);
                Ok(())
            }
        }
    }

    /// Returns the size and the use of the partition; bytes reserved for running downloads count as
    /// used.
    ///
    /// # Errors
    /// The partition cannot be measured ([`Error::Artifact`]).
    pub fn space(&self) -> Result<Space, Error> {
        let mut space = self.0.layout.space()?;
        space.used = space.used.saturating_add(self.table(|table| table.reserved));
        Ok(space)
    }

    /// Evicts files until `incoming` more bytes fit, and reserves the space. Blocks, because it
    /// reads folders.
    pub(super) fn admit(&self, incoming: u64) -> Result<(), Error> {
        // Two concurrent calls would both count the same free space.
        let _one = self.0.admission.lock().unwrap_or_else(PoisonError::into_inner);
        let (files, parts) = (self.list(), self.abandoned());
        let mut space = self.space()?;
        let eviction = eviction::admit(&files, &parts, incoming, space, self.0.budget)?;
        for part in parts.iter().filter(|part| eviction.parts.contains(&part.key)) {
            if self.remove_part(&part.key) {
                space.used = space.used.saturating_sub(part.size);
            }
        }
        for file in files.iter().filter(|file| eviction.files.contains(&file.digest)) {
            tracing::info!(digest = %file.digest, "evicted from the cache to free space");
            space.used = space.used.saturating_sub(file.size);
        }
        self.0.layout.remove(&eviction.files);
        self.table(|table| table.reserved += incoming);
        space.used = space.used.saturating_add(incoming);
        self.notice(space);
        Ok(())
    }

    /// Returns the parts without a running download.
    fn abandoned(&self) -> Vec<AbandonedPart> {
        let mut parts = self.0.layout.parts();
        self.table(|table| {
            parts.retain(|part| !table.running.contains_key(&part.key));
            for part in &mut parts {
                part.needed = table.offered.contains_key(&part.key);
            }
        });
        parts
    }

    /// Removes a part, unless a download of its file has started meanwhile.
    fn remove_part(&self, key: &str) -> bool {
        let aside = self.table(|table| {
            let runs = table.running.contains_key(key);
            (!runs).then(|| self.0.layout.set_part_aside(key))
        });
        match aside {
            None => false,
            Some(Ok(aside)) => {
                tracing::info!(key, "evicted an incomplete file from the cache to free space");
                Layout::remove_part(&aside);
                true
            }
            Some(Err(error)) => {
                tracing::warn!(key, %error, "a part of a download could not be removed");
                false
            }
        }
    }

    /// Notifies the owner once when the use reaches [`eviction::NOTICE_PERCENT`].
    fn notice(&self, space: Space) {
        let full = space.percent() >= eviction::NOTICE_PERCENT;
        let known = self.table(|table| std::mem::replace(&mut table.noticed, full));
        if full && !known {
            let (percent, refused) = (space.percent(), eviction::REFUSE_PERCENT);
            tracing::warn!(
                percent,
                "the cache's partition is filling up: above {refused} %, no new file is fetched"
            );
        }
    }
}
