//! Retention: files that stay in the cache, files that are evicted, and files that clients may
//! request by key.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::eviction::{self, AbandonedPart, Held, Space};
use super::layout::Shelf;
use super::{Cache, Digest, Wanted};
use crate::Error;

/// Reason why a file is not removed from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// The file is not in the cache.
    #[error("the file does not exist in the cache")]
    Missing,
    /// The owner has pinned the file.
    #[error("it is pinned")]
    Pinned,
    /// The file is offered, because a workflow will need it.
    #[error("a workflow needs it")]
    Needed,
    /// A machine reads the file at the moment.
    #[error("a machine is reading it now")]
    InUse,
}

impl Cache {
    /// Offers files: clients may request them by key ([`Wanted::path`]), because a workflow will
    /// need them. Offered files are never evicted. Offers are counted; a file is offered until each
    /// offer is withdrawn.
    pub fn offer<'a>(&self, wanted: impl IntoIterator<Item = &'a Wanted>) {
        self.table(|table| {
            for wanted in wanted {
                let offered = table.offered.entry(wanted.key());
                offered.or_insert_with(|| (wanted.clone(), 0)).1 += 1;
            }
        });
    }

    /// Withdraws one offer of each file: a workflow does not need it any more.
    pub fn withdraw<'a>(&self, wanted: impl IntoIterator<Item = &'a Wanted>) {
        self.table(|table| {
            for key in wanted.into_iter().map(Wanted::key) {
                let Some((_, number)) = table.offered.get_mut(&key) else { continue };
                *number -= 1;
                if *number == 0 {
                    table.offered.remove(&key);
                }
            }
        });
    }

    /// Returns the offered file at a decoded path of [`Wanted::path`]'s form. The path is only a
    /// key into the table of offers and never reaches the file system.
    pub(crate) fn offered(&self, path: &str) -> Option<Wanted> {
        let (key, name) = super::read_path(path)?;
        let (offered, _) = self.table(|table| table.offered.get(key).cloned())?;
        offered.is_named(name).then_some(offered)
    }

    /// Sets the files that are never evicted because the owner pinned them. Replaces the previous
    /// set.
    pub fn pin(&self, digests: BTreeSet<Digest>) {
        self.table(|table| table.pinned = digests);
    }

    /// Returns the digest of the file if the cache has it. Unlike [`Cache::held`] this does not
    /// count as a use. Blocks, because it reads files.
    pub fn digest(&self, wanted: &Wanted) -> Option<Digest> {
        let digest = self.0.shelf.digest(wanted)?;
        self.0.shelf.blob(digest).exists().then_some(digest)
    }

    /// Returns all complete files, the next one to be evicted first. Blocks, because it reads
    /// folders.
    pub fn list(&self) -> Vec<Held> {
        let mut held = self.0.shelf.list();
        let offered: Vec<Wanted> =
            self.table(|table| table.offered.values().map(|(wanted, _)| wanted.clone()).collect());
        let needed: BTreeSet<Digest> =
            offered.iter().filter_map(|wanted| self.0.shelf.digest(wanted)).collect();
        self.table(|table| {
            table.leases.retain(|_, lease| Arc::strong_count(lease) > 1);
            for file in &mut held {
                file.in_use = table.leases.contains_key(&file.digest);
                file.needed = needed.contains(&file.digest);
                file.pinned = table.pinned.contains(&file.digest);
            }
        });
        held.sort_by_key(|file| (!file.may_go(), file.last_used));
        held
    }

    /// Removes a file from the cache. Blocks, because it reads folders.
    ///
    /// # Errors
    /// [`Kept`].
    pub fn remove(&self, digest: Digest) -> Result<(), Kept> {
        let held = self.list();
        match held.iter().find(|file| file.digest == digest) {
            None => Err(Kept::Missing),
            Some(file) if file.pinned => Err(Kept::Pinned),
            Some(file) if file.needed => Err(Kept::Needed),
            Some(file) if file.in_use => Err(Kept::InUse),
            Some(_) => {
                self.0.shelf.remove(&[digest]);
                Ok(())
            }
        }
    }

    /// Returns the use of the partition, including the bytes reserved for running downloads.
    ///
    /// # Errors
    /// [`Error::Artifact`].
    pub fn space(&self) -> Result<Space, Error> {
        let mut space = self.0.shelf.space()?;
        space.used = space.used.saturating_add(self.table(|table| table.reserved));
        Ok(space)
    }

    /// Evicts files for `incoming` more bytes and reserves the space. Blocks, because it reads
    /// folders.
    pub(super) fn admit(&self, incoming: u64) -> Result<(), Error> {
        // Two concurrent calls would both count the same free space.
        let _one = self.0.admission.lock().unwrap_or_else(PoisonError::into_inner);
        let (held, parts) = (self.list(), self.abandoned());
        let mut space = self.space()?;
        let gone = eviction::admit(&held, &parts, incoming, space, self.0.budget)?;
        for part in parts.iter().filter(|part| gone.parts.contains(&part.key)) {
            if self.remove_part(&part.key) {
                space.used = space.used.saturating_sub(part.size);
            }
        }
        for file in held.iter().filter(|file| gone.files.contains(&file.digest)) {
            tracing::info!(digest = %file.digest, "evicted from the cache to free space");
            space.used = space.used.saturating_sub(file.size);
        }
        self.0.shelf.remove(&gone.files);
        self.table(|table| table.reserved += incoming);
        space.used = space.used.saturating_add(incoming);
        self.notice(space);
        Ok(())
    }

    /// Returns the parts without a running download.
    fn abandoned(&self) -> Vec<AbandonedPart> {
        let mut parts = self.0.shelf.parts();
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
            (!runs).then(|| self.0.shelf.set_part_aside(key))
        });
        match aside {
            None => false,
            Some(Ok(aside)) => {
                tracing::info!(key, "evicted an incomplete file from the cache to free space");
                Shelf::remove_part(&aside);
                true
            }
            Some(Err(error)) => {
                tracing::warn!(key, %error, "a part of a download could not be removed");
                false
            }
        }
    }

    /// Notifies the owner once when the partition fills up.
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
