//! Content of a transfer: a file in memory, shared by all transfers, and the patch for one machine.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::iso::Patch;

/// File that is patched while it is sent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Content {
    bytes: Arc<[u8]>,
    patch: Option<Patch>,
}

impl From<Arc<[u8]>> for Content {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self { bytes, patch: None }
    }
}

impl Content {
    /// Creates the content `bytes`, changed by `patch`.
    pub fn patched(bytes: Arc<[u8]>, patch: Patch) -> Self {
        Self { bytes, patch: Some(patch) }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a part of the content. The part is copied only if the patch changes it.
    pub fn part(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let at = range.start as u64;
        let part = &self.bytes[range];
        match self.patch.as_ref().filter(|patch| patch.changes(at, part.len())) {
            Some(patch) => {
                let mut changed = part.to_vec();
                patch.apply(at, &mut changed);
                Cow::Owned(changed)
            }
            None => Cow::Borrowed(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use super::Content;
    use crate::iso::{MAGIC, Patch, Replacement};

    #[test]
    fn machines_share_one_copy_and_each_gets_its_own_arguments() {
        let place = 3000;
        let mut bytes = vec![7; 9000];
        bytes[place..place + MAGIC.len()].copy_from_slice(MAGIC.as_bytes());
        let bytes: Arc<[u8]> = bytes.into();
        for name in ["nuc1", "nuc2"] {
            let patch = Patch::new([place as u64].into(), Replacement::new(&[name]).unwrap());
            let mut wanted = bytes.to_vec();
            patch.apply(0, &mut wanted);
            let content = Content::patched(Arc::clone(&bytes), patch);
            let (mut sent, mut copied) = (Vec::new(), 0);
            for start in (0..content.size()).step_by(512) {
                let part = content.part(start..(start + 512).min(content.size()));
                copied += usize::from(matches!(part, Cow::Owned(_)));
                sent.extend_from_slice(&part);
            }
            assert!(sent == wanted, "{name}");
            assert_eq!(copied, 3, "what the patch touches");
        }
        assert_eq!(Arc::strong_count(&bytes), 1);
    }
}
