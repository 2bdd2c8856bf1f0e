//! The boot volume, which is mounted read-only but for the moment of a change: the block of
//! variables, a folder for each slot, and what its owner wrote.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Environment, Slot};
use crate::Error;
use crate::bundle::Verity;
use crate::init::{BOOT, privileged};

/// What the owner wrote.
pub(super) const SETTINGS: &str = "box.toml";

/// Names of cut changes that are passed over.
const LEFT_OVER_MAX: usize = 1024;

/// One change at a time: the end of one would take the volume from under the other.
pub(super) static CHANGING: Mutex<()> = Mutex::new(());

/// Where the volume is.
#[derive(Debug, Clone)]
pub struct BootVolume {
    folder: PathBuf,
    /// It is a volume of its own, and read-only.
    mounted: bool,
}

impl BootVolume {
    /// The running box's.
    pub fn own() -> Self {
        Self { folder: PathBuf::from(BOOT), mounted: true }
    }

    /// One that is a folder of somebody else's volume.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), mounted: false }
    }

    /// The variables as they are.
    ///
    /// # Errors
    /// When the volume cannot be read, or the block on it is damaged.
    pub fn read(&self) -> Result<Environment, Error> {
        let path = self.variables();
        let block = fs::read(&path).map_err(Error::io(format!("read {}", path.display())))?;
        Environment::parse(&block).map_err(|damage| damaged(&path, &damage))
    }

    /// The variables; a damaged block is first mended on the volume, as by [`BootVolume::change`].
    ///
    /// # Errors
    /// When the volume cannot be read or written.
    pub fn mended(&self, running: Slot) -> Result<Environment, Error> {
        let path = self.variables();
        let block = fs::read(&path).map_err(Error::io(format!("read {}", path.display())))?;
        if let Ok(variables) = Environment::parse(&block) {
            return Ok(variables);
        }
        self.change(running, |_| ())?;
        self.read()
    }

    /// Changes the variables, and is on disk when it returns. A damaged block is first mended, from
    /// what the running slot proves. Nothing is written where nothing changes.
    ///
    /// # Errors
    /// When the volume cannot be read or written.
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

    /// The release in `slot`, as its boot script says; `None` when nobody knows.
    pub fn version(&self, slot: Slot) -> Option<String> {
        let script = fs::read_to_string(self.of(slot).join("boot.cfg")).ok()?;
        Verity::version_in(&script).map(str::to_owned)
    }

    /// Puts a kernel and the script that boots it into `slot`, and reads them again. GRUB must not
    /// start the slot while this is done: whoever calls has marked it bad.
    ///
    /// # Errors
    /// When the volume cannot be written, or gives back something else.
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

    /// What the owner wrote, or had the box write: `box.toml`; `None` when there is none.
    ///
    /// # Errors
    /// When the volume cannot be read.
    pub fn settings(&self) -> Result<Option<String>, Error> {
        let path = self.folder.join(SETTINGS);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
        }
    }

    /// Writes `box.toml` anew: whatever happens, the old one is there or the new one. `number` is
    /// one that no change had before: FAT may leave two names for one file when the power is cut
    /// in a rename, so a name is never used twice, also not after a factory reset.
    ///
    /// # Errors
    /// When the volume cannot be written, or gives back something else. The old one is kept then.
    pub fn replace_settings(&self, text: &str, number: u32) -> Result<(), Error> {
        let path = self.folder.join(SETTINGS);
        let parts = (number..=u32::MAX).map(|number| self.folder.join(format!("box.{number}")));
        let part = parts.take(LEFT_OVER_MAX).find(|part| !part.exists());
        let full = || io::Error::other("too many changes of the settings were cut by the power");
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

    /// Removes these files of the volume's root; on disk when it returns. Nothing is written where
    /// none is there.
    ///
    /// # Errors
    /// When the volume cannot be written.
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

    /// True when all of the volume is the box's own.
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
        // Also after a failure: the volume must not stay open to a power cut.
        let closed = self.set_writable(false);
        done.and(closed)
    }

    fn set_writable(&self, writable: bool) -> Result<(), Error> {
        if self.mounted { privileged::set_boot_writable(writable) } else { Ok(()) }
    }
}

/// The block to write, if any.
fn changed(
    path: &Path,
    running: Slot,
    decide: impl FnOnce(&mut Environment),
) -> Result<Option<Vec<u8>>, Error> {
    let old = fs::read(path).map_err(Error::io(format!("read {}", path.display())))?;
    let mut environment = match Environment::parse(&old) {
        Ok(environment) => environment,
        Err(damage) => {
            tracing::warn!(%damage, "the boot loader's variables are damaged: mending them");
            Environment::mended(running)
        }
    };
    decide(&mut environment);
    let new = environment.block().map_err(|damage| damaged(path, &damage))?;
    Ok((old != new).then(|| new.to_vec()))
}

/// Over the bytes that are there, in one call: the file keeps its blocks.
fn overwrite(path: &Path, block: &[u8]) -> Result<(), Error> {
    let write = || {
        let file = File::options().write(true).open(path)?;
        let size = file.metadata()?.len();
        if size != block.len() as u64 {
            let what = format!("it has {size} bytes, and GRUB cannot use another block");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        file.write_all_at(block, 0)?;
        file.sync_all()
    };
    write().map_err(Error::io(format!("write {}", path.display())))
}

/// Writes a file and compares what is there afterwards.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()?;
        super::fill::forget(&file)?;
        if fs::read(path)? == bytes {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the disk gives back something else"))
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
