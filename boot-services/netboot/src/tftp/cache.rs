//! Files in memory, one copy for all transfers that are running: a rack that powers on together
//! asks for the same file a hundred times.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

use crate::files::{Files, Shelf, Tag};

/// Bytes held by all running transfers together.
const MAX_RESIDENT: u64 = 128 << 20;
/// Names remembered.
const MAX_NAMES: usize = 64;

type Name = (Shelf, String);

/// Contents by name; a content lives as long as a transfer holds it.
#[derive(Default)]
pub(super) struct Cache {
    held: HashMap<Name, (Tag, Weak<[u8]>)>,
}

impl Cache {
    /// The content of a file, read from disk unless a running transfer has the same one.
    pub(super) async fn get(
        &mut self,
        files: &Files,
        shelf: Shelf,
        name: &str,
    ) -> io::Result<Arc<[u8]>> {
        let opened = files.open(shelf, name).await?;
        let (tag, key) = (opened.tag, (shelf, name.to_owned()));
        if let Some((known, content)) = self.held.get(&key)
            && *known == tag
            && let Some(content) = content.upgrade()
        {
            return Ok(content);
        }
        self.held.retain(|_, (_, content)| content.strong_count() > 0);
        let resident: u64 =
            self.held.values().filter_map(|(_, c)| c.upgrade()).map(|c| c.len() as u64).sum();
        if resident + opened.size > MAX_RESIDENT || self.held.len() >= MAX_NAMES {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let content: Arc<[u8]> = opened.load().await?.into();
        self.held.insert(key, (tag, Arc::downgrade(&content)));
        Ok(content)
    }
}
