//! Boot volume with the block of variables, a folder for each slot, and the owner's settings. The
//! volume is mounted read-only except during a change.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Environment, Slot};
use crate::Error;
use crate::bundle::Verity;
use crate::disk::mount_points::BOOT;
use crate::privileged;

/// File name of the owner's settings.
pub(super) const SETTINGS: &str = "box.toml";

/// Maximum number of temporary names that are skipped because a power cut left a file.
const LEFT_OVER_MAX: usize = 1024;

/// Lock that allows one change at a time. The end of a change makes the volume read-only, which
/// would break another change.
pub(super) static CHANGING: Mutex<()> = Mutex::new(());

/// Boot volume, by the folder where it is mounted.
#[derive(Debug, Clone)]
pub struct BootVolume {
    folder: PathBuf,
    /// True if the folder is the mount point of a read-only volume.
    mounted: bool,
}

impl BootVolume {
    /// Returns the boot volume of the running box.
    pub fn own() -> Self {
        Self { folder: PathBuf::from(BOOT), mounted: true }
    }

    /// Returns a boot volume that is an ordinary folder, for tests.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), mounted: false }
    }

    /// Reads the variables without repairing them.
    ///
    /// # Errors
    /// The volume cannot be read, or the block is damaged.
    pub fn read(&self) -> Result<Environment, Error> {
        let path = self.variables();
        let block = fs::read(&path).map_err(Error::io(format!("read {}", path.display())))?;
        Environment::parse(&block).map_err(|damage| damaged(&path, &damage))
    }

    /// Reads the variables. A damaged block is first replaced as by [`BootVolume::change`].
    ///
    /// # Errors
    /// The volume cannot be read or written.
    pub fn mended(&self, running: Slot) -> Result<Environment, Error> {
        let path = self.variables();
        let block = fs::read(&path).map_err(Error::io(format!("read {}", path.display())))?;
        if let Ok(variables) = Environment::parse(&block) {
            return Ok(variables);
        }
        self.change(running, |_| ())?;
        self.read()
    }

    /// Changes the variables by `decide`, durably. A damaged block is first replaced by default
    /// variables for the running slot. Unchanged variables are not written.
    ///
    /// # Errors
    /// The volume cannot be read or written.
    pub fn change(
        &self,
        running: Slot,
        decide: impl FnOnce(&mut Environment),
    ) -> Result<(), Error> {
        let path = self.variables();
        let _alone = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        match changed(&path, running, decide)? {
            Some(block) => self.writable(|| overwrite(&path, &block)),
            None => Ok(()),
        }
    }

    /// Returns the release in `slot`, or `None` if the slot's boot script is missing or names none.
    pub fn version(&self, slot: Slot) -> Option<String> {
        let script = fs::read_to_string(self.of(slot).join("boot.cfg")).ok()?;
        Verity::version_in(&script).map(str::to_owned)
    }

    /// Writes a kernel and its boot script into `slot`, and reads both back. GRUB must not start
    /// the slot during the write, so the caller must first mark the slot as bad.
    ///
    /// # Errors
    /// The volume cannot be written, or the data read back differs.
    pub(super) fn put(&self, slot: Slot, kernel: &[u8], script: &str) -> Result<(), Error> {
        let folder = self.of(slot);
        let _alone = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        self.writable(|| {
            fs::create_dir_all(&folder).map_err(Error::io(format!("make {}", folder.display())))?;
            for (name, bytes) in [("vmlinuz", kernel), ("boot.cfg", script.as_bytes())] {
                write(&folder.join(name), bytes)?;
            }
            sync(&folder)
        })
    }

    /// Returns the text of `box.toml`, or `None` if the file does not exist.
    ///
    /// # Errors
    /// The volume cannot be read.
    pub fn settings(&self) -> Result<Option<String>, Error> {
        let path = self.folder.join(SETTINGS);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
        }
    }

    /// Replaces `box.toml`. After a power cut, the old or the new file exists. `number` is part of
    /// the temporary name and must be new for each change, also after a factory reset. A power cut
    /// during a rename may leave two names for one file on FAT.
    ///
    /// # Errors
    /// The volume cannot be written, or the data read back differs. The old file is then kept.
    pub fn replace_settings(&self, text: &str, number: u32) -> Result<(), Error> {
        let path = self.folder.join(SETTINGS);
        let parts = (number..=u32::MAX).map(|number| self.folder.join(format!("box.{number}")));
        let part = parts.take(LEFT_OVER_MAX).find(|part| !part.exists());
        let full = || io::Error::other("power cuts interrupted too many changes of the settings");
        let what = format!("write {}", path.display());
        let part = part.ok_or_else(|| Error::io(what)(full()))?;
        let _alone = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        self.writable(|| {
            write(&part, text.as_bytes())?;
            let renamed = fs::rename(&part, &path);
            renamed.map_err(Error::io(format!("replace {}", path.display())))?;
            sync(&self.folder)
        })
    }

    /// Removes files from the root folder of the volume, durably. Missing files are accepted, and
    /// the volume is not written if all are missing.
    ///
    /// # Errors
    /// The volume cannot be written.
    pub fn forget(&self, names: &[&str]) -> Result<(), Error> {
        let paths = names.iter().map(|name| self.folder.join(name));
        let paths: Vec<PathBuf> = paths.filter(|path| path.exists()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let _alone = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        self.writable(|| {
            for path in &paths {
                let what = format!("remove {}", path.display());
                fs::remove_file(path).map_err(Error::io(what))?;
            }
            sync(&self.folder)
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// True if the folder is a mounted volume of the box, and false for a folder of a test.
    pub(super) fn is_volume(&self) -> bool {
        self.mounted
    }

    fn of(&self, slot: Slot) -> PathBuf {
        self.folder.join("tinbox").join(slot.letter().to_string())
    }

    fn variables(&self) -> PathBuf {
        self.folder.join("tinbox/grubenv")
    }

    pub(super) fn writable(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        self.set_writable(true)?;
        let done = work();
        // The volume becomes read-only even after a failure, because a power cut could damage a
        // writable volume.
        let closed = self.set_writable(false);
        done.and(closed)
    }

    fn set_writable(&self, writable: bool) -> Result<(), Error> {
        if self.mounted { privileged::set_boot_writable(writable) } else { Ok(()) }
    }
}

/// Returns the block of variables after `decide`, or `None` if the block does not change.
fn changed(
    path: &Path,
    running: Slot,
    decide: impl FnOnce(&mut Environment),
) -> Result<Option<Vec<u8>>, Error> {
    let old = fs::read(path).map_err(Error::io(format!("read {}", path.display())))?;
    let mut environment = match Environment::parse(&old) {
        Ok(environment) => environment,
        Err(damage) => {
            tracing::warn!(%damage, "the boot loader's variables are damaged: repairing them");
            Environment::mended(running)
        }
    };
    decide(&mut environment);
    let new = environment.block().map_err(|damage| damaged(path, &damage))?;
    Ok((old != new).then(|| new.to_vec()))
}

/// Overwrites the variables in place with one call, so that the file keeps its disk blocks.
fn overwrite(path: &Path, block: &[u8]) -> Result<(), Error> {
    let write = || {
        let file = File::options().write(true).open(path)?;
        let size = file.metadata()?.len();
        if size != block.len() as u64 {
            let what = format!("it has {size} bytes, and GRUB cannot use a second block");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        file.write_all_at(block, 0)?;
        file.sync_all()
    };
    write().map_err(Error::io(format!("write {}", path.display())))
}

/// Writes a file, and compares it with the bytes read back from the disk.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()?;
        super::fill::forget(&file)?;
        if fs::read(path)? == bytes {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the disk returned other data"))
    };
    write().map_err(Error::io(format!("write {}", path.display())))
}

pub(super) fn sync(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(Error::io(format!("write {}", folder.display())))
}

fn damaged(path: &Path, damage: &super::Damage) -> Error {
    let why = io::Error::new(io::ErrorKind::InvalidData, damage.to_string());
    Error::io(format!("use {}", path.display()))(why)
}
