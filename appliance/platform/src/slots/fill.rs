//! Installation of an update into the slot that is not running. The boot loader's variables mark
//! the slot as bad before the first write, and as good after all data was read back. A power cut
//! during the installation only loses the update.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::Advice;
use sha2::{Digest as _, Sha256};

use super::{BootVolume, Slot};
use crate::Error;
use crate::bundle::{Arch, Content, Manifest, Part};
use crate::disk;

/// Maximum size of a kernel in bytes. The kernel is kept in memory until the boot volume is
/// writable.
pub const KERNEL_MAX: u64 = 32 << 20;
/// Bytes that are read back at once.
const PIECE: usize = 1 << 20;

/// Installation of a bundle with a verified manifest.
#[derive(Debug)]
pub struct Filling {
    volume: BootVolume,
    running: Slot,
    manifest: Manifest,
    root: File,
    kernel: Vec<u8>,
}

impl Filling {
    /// Marks the slot that is not `running` as bad, and opens its partition for writing.
    ///
    /// # Errors
    /// The release does not fit, the partition does not exist, or the boot loader's variables
    /// cannot be written.
    pub fn begin(running: Slot, manifest: Manifest) -> Result<Self, Error> {
        let name = format!("root-{}", running.other().letter());
        let partition = disk::partitions()?.remove(&name).ok_or(Error::NoPartition { name })?;
        Self::of(BootVolume::own(), running, manifest, &partition)
    }

    fn of(
        volume: BootVolume,
        running: Slot,
        manifest: Manifest,
        partition: &Path,
    ) -> Result<Self, Error> {
        let opened = || {
            let mut root = File::options().read(true).write(true).open(partition)?;
            let room = root.seek(SeekFrom::End(0))?;
            Ok((root, room))
        };
        let what = format!("open {}", partition.display());
        let (root, room) = opened().map_err(Error::io::<io::Error>(what))?;
        for part in &manifest.parts {
            let room = match part.content {
                Content::Kernel => KERNEL_MAX,
                Content::Root => room,
            };
            if part.size > room {
                let (content, size) = (part.content, part.size);
                return Err(Error::NoRoom { content, size, room });
            }
        }
        volume.change(running, |all| {
            all.mark_bad(running.other());
            all.prefer(running);
            all.end_trial();
        })?;
        Ok(Self { volume, running, manifest, root, kernel: Vec::new() })
    }

    /// Writes the next bytes of a part. The bytes must come in the order of
    /// [`crate::bundle::Reader`].
    ///
    /// # Errors
    /// The disk returns a write error.
    pub fn write(&mut self, content: Content, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        match content {
            Content::Kernel => self.kernel.extend_from_slice(bytes),
            Content::Root => self
                .root
                .write_all_at(bytes, offset)
                .map_err(Error::io(format!("write the root at byte {offset}")))?,
        }
        Ok(())
    }

    /// Reads the root back, writes the kernel to the boot volume, and makes the slot the next to
    /// start. All changes are durable when this function returns.
    ///
    /// # Errors
    /// A write fails, or data read back differs. The slot is then still marked as bad.
    pub fn finish(mut self) -> Result<(), Error> {
        self.read_back().map_err(Error::io("read the new root back"))?;
        let slot = self.running.other();
        let script = self.manifest.verity.boot_script(Arch::OWN, slot, &self.manifest.version);
        self.volume.put(slot, &self.kernel, &script)?;
        self.volume.change(self.running, |all| all.put_on_trial(slot))
    }

    fn read_back(&mut self) -> io::Result<()> {
        self.root.sync_all()?;
        forget(&self.root)?;
        let parts = self.manifest.parts.iter();
        for Part { size, sum, .. } in parts.filter(|part| part.content == Content::Root) {
            let (mut found, mut left) = (Sha256::new(), *size);
            let mut piece = vec![0; PIECE];
            self.root.seek(SeekFrom::Start(0))?;
            while left > 0 {
                let count = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
                let piece = piece.get_mut(..count).unwrap_or_default();
                self.root.read_exact(piece)?;
                found.update(&*piece);
                left -= count as u64;
            }
            if found.finalize().as_slice() != sum {
                let why = "the disk returned other data";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        Ok(())
    }
}

/// Drops a file from the page cache, so that the next read comes from the disk.
pub(super) fn forget(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod cuts;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use sha2::{Digest as _, Sha256};

    use super::{Filling, KERNEL_MAX};
    use crate::Error;
    use crate::bundle::{Arch, Content, Manifest, Part, Verity};
    use crate::slots::{BootVolume, Slot};

    const ROOT: usize = 3 << 20;

    fn manifest() -> Manifest {
        let part = |content, bytes: &[u8]| {
            let (size, sum) = (bytes.len() as u64, Sha256::digest(bytes).into());
            Part { content, size, sum, chunks: Vec::new() }
        };
        let verity = Verity { root_hash: [1; 32], salt: [2; 32], data_blocks: 700 };
        let parts = vec![part(Content::Kernel, b"kernel"), part(Content::Root, &[7; ROOT])];
        Manifest { version: "9.1.0".to_owned(), arch: Arch::OWN, built: 0, verity, parts }
    }

    fn flashed(folder: &Path) -> BootVolume {
        fs::create_dir_all(folder.join("tinbox")).unwrap();
        let mut block =
            b"# GRUB Environment Block\nORDER=A B\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\n".to_vec();
        block.resize(1024, b'#');
        fs::write(folder.join("tinbox/grubenv"), block).unwrap();
        fs::write(folder.join("root-b"), vec![0; ROOT + 512]).unwrap();
        BootVolume::at(folder)
    }

    #[test]
    fn a_slot_is_bad_until_all_of_it_was_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, root) = (flashed(folder.path()), folder.path().join("root-b"));
        let begin = || Filling::of(volume.clone(), Slot::A, manifest(), &root).unwrap();
        let fill = |filling: &mut Filling, byte| {
            filling.write(Content::Kernel, 0, b"ker").unwrap();
            filling.write(Content::Kernel, 3, b"nel").unwrap();
            filling.write(Content::Root, 0, &[byte; 1 << 20]).unwrap();
            filling.write(Content::Root, 1 << 20, &[7; 2 << 20]).unwrap();
        };
        let mut filling = begin();
        let environment = volume.read().unwrap();
        assert!(!environment.whole(Slot::B) && environment.first() == Some(Slot::A));
        fill(&mut filling, 8);
        let error = stdx::chain(&filling.finish().unwrap_err());
        assert!(error.contains("returned other data"), "{error}");
        let environment = volume.read().unwrap();
        assert!(!environment.whole(Slot::B) && environment.trial().is_none());

        let mut filling = begin();
        fill(&mut filling, 7);
        filling.finish().unwrap();
        let environment = volume.read().unwrap();
        assert!(environment.whole(Slot::B), "{environment:?}");
        assert_eq!((environment.first(), environment.trial()), (Some(Slot::B), Some(Slot::B)));
        assert_eq!((environment.tries(Slot::B), environment.tries(Slot::A)), (Some(1), Some(0)));
        assert_eq!(volume.version(Slot::B).as_deref(), Some("9.1.0"));
        assert_eq!(fs::read(folder.path().join("tinbox/b/vmlinuz")).unwrap(), b"kernel");
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, root) = (flashed(folder.path()), folder.path().join("root-b"));
        for (part, size) in [(0, KERNEL_MAX + 1), (1, ROOT as u64 + 513)] {
            let mut manifest = manifest();
            manifest.parts[part].size = size;
            let refused = Filling::of(volume.clone(), Slot::A, manifest, &root).unwrap_err();
            assert!(matches!(refused, Error::NoRoom { .. }), "{refused}");
        }
        assert!(volume.read().unwrap().whole(Slot::B));
    }
}
