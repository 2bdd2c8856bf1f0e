//! The state volume. The volume is mounted, repaired if only its superblock is damaged, and
//! formatted again for a factory reset.
//!
//! A file system that does not mount must never be formatted for that reason alone. Without its
//! state volume, the box does not know its owner or its machines. The box then serves no machine,
//! accepts no new owner, and waits for a person.

mod superblock;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use super::STATE;
use super::volumes::{EXT4, mount_at, mount_part};
use crate::Error;
use crate::disk::mount_points::DATA;

/// Name of the state partition in the GPT.
const NAME: &str = "state";
/// Image of an empty file system, in the read-only root.
const EMPTY: &str = "/usr/share/tinbox/state.ext4";
/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
/// Folder of the kernel with the mounted ext4 file systems.
const SYS: &str = "/sys/fs/ext4";

/// The state volume of this start.
#[derive(Debug)]
pub(super) struct State {
    device: Option<PathBuf>,
    /// True if the file system mounts but has errors, or had a damaged superblock.
    damaged: bool,
    /// Reason why the volume does not mount, so that a tmpfs replaces it; `None` if mounted.
    lost: Option<String>,
}

impl State {
    /// Mounts the volume on `device`. Repaired damage is added to `trouble`.
    pub(super) fn mount(device: Option<PathBuf>, trouble: &mut Vec<String>) -> Self {
        let mut state = Self { device, damaged: false, lost: None };
        let mounted = state.mount_disk().or_else(|error| {
            let mended = state.device.as_deref().is_some_and(mend_superblock);
            if !mended {
                return Err(error);
            }
            state.damaged = true;
            trouble.push(format!(
                "the first block of {STATE} was damaged ({}), and is restored from its copy; make \
                 a backup, the disk may fail",
                stdx::chain(&error)
            ));
            state.mount_disk()
        });
        match mounted {
            Ok(()) => {
                let errors = state.errors();
                state.damaged |= errors.is_some();
                trouble.extend(errors);
            }
            Err(error) => state.stand_in(&error, trouble),
        }
        state
    }

    /// Returns the reason why the volume does not mount, or `None` if it is mounted.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// True if the file system is damaged or does not mount. Only formatting repairs it.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged || self.lost.is_some()
    }

    /// Formats the volume: writes an empty file system over the whole partition.
    ///
    /// # Errors
    /// The disk or the kernel returns an error. The volume may then be unusable.
    pub(super) fn renew(&mut self, trouble: &mut Vec<String>) -> Result<(), Error> {
        eprintln!("tinbox: {STATE} is made anew; do not worry about the power");
        let none = || Error::NoPartition { name: NAME.to_owned() };
        let device = self.device.clone().ok_or_else(none)?;
        unmount(STATE, UnmountFlags::empty()).map_err(Error::io(format!("unmount {STATE}")))?;
        let what = format!("create the file system on {} again", device.display());
        let made = write_anew(Path::new(EMPTY), &device).map_err(Error::io::<io::Error>(what));
        let mounted = made.and_then(|()| self.mount_disk());
        match &mounted {
            Ok(()) => (self.lost, self.damaged) = (None, false),
            Err(error) => self.stand_in(error, trouble),
        }
        mounted
    }

    fn mount_disk(&self) -> Result<(), Error> {
        mount_part(NAME, self.device.clone(), STATE, "ext4", DATA, EXT4)
    }

    /// Mounts a tmpfs instead of the volume. The box starts and reports the problem, and loses all
    /// changes at shutdown.
    fn stand_in(&mut self, error: &Error, trouble: &mut Vec<String>) {
        self.lost = Some(stdx::chain(error));
        let mounted = mount_at(Path::new("tmpfs"), STATE, "tmpfs", DATA, "mode=700,size=25%");
        trouble.extend(mounted.err().map(|error| stdx::chain(&error)));
    }

    /// Returns a sentence with the number of errors that the kernel recorded; `None` if no errors.
    fn errors(&self) -> Option<String> {
        let name = self.device.as_deref()?.file_name()?;
        let count = fs::read_to_string(Path::new(SYS).join(name).join("errors_count")).ok()?;
        let count: u64 = count.trim().parse().ok()?;
        (count > 0).then(|| {
            format!(
                "the file system of {STATE} has {count} errors; make a backup, reset the box to \
                 its factory state, and restore it"
            )
        })
    }

    /// Creates the reserve for files that must be written even on a full volume.
    pub(super) fn reserve(&self) {
        if self.lost.is_none()
            && let Err(error) = durable_file::reserve(Path::new(STATE))
        {
            eprintln!("tinbox: {STATE} has no reserved space: {error}");
        }
    }
}

/// Restores a damaged superblock from its first copy. Returns true if a superblock was restored.
fn mend_superblock(device: &Path) -> bool {
    let attempt = || {
        let file = OpenOptions::new().read(true).write(true).open(device)?;
        let mut blocks = [[0; superblock::BYTES]; 2];
        let [first, copy] = &mut blocks;
        file.read_exact_at(first, superblock::AT)?;
        file.read_exact_at(copy, superblock::COPY_AT)?;
        let Some(mended) = superblock::mended(first, copy) else { return Ok(false) };
        file.write_all_at(&mended, superblock::AT)?;
        file.sync_all()?;
        Ok(true)
    };
    attempt().unwrap_or_else(|error: io::Error| {
        eprintln!("tinbox: cannot repair {}: {error}", device.display());
        false
    })
}

/// Writes the image `empty` over all of `device`. The first piece, without which the file system
/// does not mount, is erased first and written last.
fn write_anew(empty: &Path, device: &Path) -> io::Result<()> {
    let mut from = File::open(empty)?;
    // The kernel refuses to open a mounted device with O_EXCL.
    let mut options = OpenOptions::new();
    let to = options.write(true).custom_flags(libc::O_EXCL).open(device)?;
    let room = io::Seek::seek(&mut &to, io::SeekFrom::End(0))?;
    let size = from.metadata()?.len();
    if size > room {
        let (size, room) = (stdx::bytes(size), stdx::bytes(room));
        return Err(io::Error::other(format!("it needs {size}, but has {room}")));
    }
    let mut first = vec![0; PIECE.min(usize::try_from(room).unwrap_or(PIECE))];
    to.write_all_at(&first, 0)?;
    to.sync_all()?;
    let mut piece = Vec::with_capacity(PIECE);
    let mut at = 0;
    while at < room {
        let count = PIECE.min(usize::try_from(room - at).unwrap_or(PIECE));
        piece.clear();
        from.by_ref().take(count as u64).read_to_end(&mut piece)?;
        // Zeros after the image erase the rest of the old file system.
        piece.resize(count, 0);
        match at {
            0 => first.copy_from_slice(&piece),
            _ => to.write_all_at(&piece, at)?,
        }
        at += count as u64;
    }
    to.sync_all()?;
    to.write_all_at(&first, 0)?;
    to.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{PIECE, write_anew};

    #[test]
    fn nothing_of_the_old_volume_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, device] = ["empty", "device"].map(|name| folder.path().join(name));
        let content: Vec<u8> = (0..PIECE * 2 + 4096).map(|at| (at % 251) as u8).collect();
        fs::write(&empty, &content).unwrap();
        fs::write(&device, vec![0xa5; PIECE * 4 + 512]).unwrap();
        write_anew(&empty, &device).unwrap();
        let written = fs::read(&device).unwrap();
        let (new, behind) = written.split_at(content.len());
        assert!(new == content && behind.iter().all(|byte| *byte == 0));
        assert_eq!(written.len(), PIECE * 4 + 512);
    }

    #[test]
    fn a_partition_that_is_too_small_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, device] = ["empty", "device"].map(|name| folder.path().join(name));
        fs::write(&empty, vec![1; 8192]).unwrap();
        fs::write(&device, vec![2; 4096]).unwrap();
        let refused = write_anew(&empty, &device).unwrap_err().to_string();
        assert_eq!(refused, "it needs 8.0 KiB, but has 4.0 KiB");
        assert_eq!(fs::read(&device).unwrap(), [2; 4096]);
    }
}
