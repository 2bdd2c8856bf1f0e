//! What stays in the cache, what goes, and what may be asked for by its key.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::room::{self, AbandonedPart, Held, Space};
use super::shelf::Shelf;
use super::{Cache, Digest, Wanted};
use crate::Error;

/// Why a file is not taken out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// It is not in it.
    #[error("there is no such file in the cache")]
    Missing,
    /// It is pinned.
    #[error("it is pinned")]
    Pinned,
    /// It is offered: a workflow will need it.
    #[error("a workflow needs it")]
    Needed,
    /// Somebody reads it.
    #[error("a machine reads it just now")]
    InUse,
}

impl Cache {
    /// Files may be asked for by their key ([`Wanted::path`]), because a workflow will need them.
    /// No lack of room takes them. Each is offered until it is withdrawn as often.
    pub fn offer<'a>(&self, wanted: impl IntoIterator<Item = &'a Wanted>) {
        self.table(|table| {
            for wanted in wanted {
                let offered = table.offered.entry(wanted.key());
                offered.or_insert_with(|| (wanted.clone(), 0)).1 += 1;
            }
        });
    }

    /// A workflow needs files no more.
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

    /// The offered file at a decoded path of [`Wanted::path`]'s form. It only ever names an entry
    /// of the table of offers: nothing of it reaches the file system.
    pub(crate) fn offered(&self, path: &str) -> Option<Wanted> {
        let (key, name) = super::read_path(path)?;
        let (offered, _) = self.table(|table| table.offered.get(key).cloned())?;
        offered.is_named(name).then_some(offered)
    }

    /// What no lack of room may take because its owner says so. Replaces what was said before.
    pub fn pin(&self, digests: BTreeSet<Digest>) {
        self.table(|table| table.pinned = digests);
    }

    /// What the file is, if it is here; unlike [`Cache::held`] this does not count as using it.
    /// Reads files: it may block.
    pub fn digest(&self, wanted: &Wanted) -> Option<Digest> {
        let digest = self.0.shelf.digest(wanted)?;
        self.0.shelf.blob(digest).exists().then_some(digest)
    }

    /// Every whole file, the next to go first. Reads folders: it may block.
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

    /// Takes a file out of the cache. Reads folders: it may block.
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

    /// How full the partition is, counting what is still to come of running downloads.
    ///
    /// # Errors
    /// [`Error::Artifact`].
    pub fn space(&self) -> Result<Space, Error> {
        let mut space = self.0.shelf.space()?;
        space.used = space.used.saturating_add(self.table(|table| table.reserved));
        Ok(space)
    }

    /// Makes room for `incoming` more bytes and reserves it. Reads folders: it may block.
    pub(super) fn admit(&self, incoming: u64) -> Result<(), Error> {
        // Two that count the same room would both take it.
        let _one = self.0.admission.lock().unwrap_or_else(PoisonError::into_inner);
        let (held, parts) = (self.list(), self.abandoned());
        let mut space = self.space()?;
        let gone = room::admit(&held, &parts, incoming, space, self.0.budget)?;
        for part in parts.iter().filter(|part| gone.parts.contains(&part.key)) {
            if self.remove_part(&part.key) {
                space.used = space.used.saturating_sub(part.size);
            }
        }
        for file in held.iter().filter(|file| gone.files.contains(&file.digest)) {
            tracing::info!(digest = %file.digest, "leaves the cache for want of room");
            space.used = space.used.saturating_sub(file.size);
        }
        self.0.shelf.remove(&gone.files);
        self.table(|table| table.reserved += incoming);
        space.used = space.used.saturating_add(incoming);
        self.notice(space);
        Ok(())
    }

    /// Parts of files that no download goes on with.
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

    /// Removes a part, unless a download goes on with it by now.
    fn remove_part(&self, key: &str) -> bool {
        let aside = self.table(|table| {
            let runs = table.running.contains_key(key);
            (!runs).then(|| self.0.shelf.set_part_aside(key))
        });
        match aside {
            None => false,
            Some(Ok(aside)) => {
                tracing::info!(key, "what arrived of a file leaves the cache for want of room");
                Shelf::remove_part(&aside);
                true
            }
            Some(Err(error)) => {
                tracing::warn!(key, %error, "a part of a download could not be removed");
                false
            }
        }
    }

    /// Tells the owner once when the partition fills up.
    fn notice(&self, space: Space) {
        let full = space.percent() >= room::NOTICE_PERCENT;
        let known = self.table(|table| std::mem::replace(&mut table.noticed, full));
        if full && !known {
            let (percent, refused) = (space.percent(), room::REFUSE_PERCENT);
            tracing::warn!(
                percent,
                "the cache's partition fills up: above {refused} % no new file is fetched"
            );
        }
    }
}
