//! Files in memory, one copy of each for all running transfers: a rack that powers on at once
//! requests the same file a hundred times.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

use crate::files::{ArtifactFolder, Files, Tag};

/// Maximum bytes that all running transfers hold together.
const MAX_RESIDENT: u64 = 128 << 20;
/// Maximum file names in the table.
const MAX_NAMES: usize = 64;

type Name = (ArtifactFolder, String);

/// Contents of files by name. A content is freed when no transfer uses it any more.
#[derive(Default)]
pub(super) struct Cache {
    held: HashMap<Name, (Tag, Weak<[u8]>)>,
}

impl Cache {
    /// Returns the content of a file. The file is read from disk unless a running transfer holds
    /// the same version.
    pub(super) async fn get(
        &mut self,
        files: &Files,
        folder: ArtifactFolder,
        name: &str,
    ) -> io::Result<Arc<[u8]>> {
        let opened = files.open(folder, name).await?;
        let (tag, key) = (opened.tag, (folder, name.to_owned()));
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
