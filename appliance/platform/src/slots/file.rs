//! The block on the boot volume, which is mounted read-only but for the moment of a change.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::mount::{MountFlags, mount_remount};

use super::{Environment, Slot};
use crate::Error;
use crate::init::{BOOT, BOOT_FLAGS};

/// On the boot volume.
const FILE: &str = "tinbox/grubenv";
/// One change at a time: the end of one would take the volume from under the other.
static CHANGING: Mutex<()> = Mutex::new(());

/// The variables as they are.
///
/// # Errors
/// When the volume cannot be read, or the block on it is damaged.
pub fn read() -> Result<Environment, Error> {
    read_from(&path())
}

/// Changes the variables, and is on disk when it returns. A damaged block is first mended, from
/// what the running slot proves. Nothing is written where nothing changes.
///
/// # Errors
/// When the volume cannot be read or written.
pub fn change(running: Slot, decide: impl FnOnce(&mut Environment)) -> Result<(), Error> {
    let _alone = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = path();
    let Some(block) = changed(&path, running, decide)? else { return Ok(()) };
    remount(BOOT_FLAGS.difference(MountFlags::RDONLY))?;
    let written = write(&path, &block);
    // Also after a failure: the volume must not stay open to a power cut.
    let closed = remount(BOOT_FLAGS);
    written.and(closed)
}

/// The block to write, if any.
pub(super) fn changed(
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
pub(super) fn write(path: &Path, block: &[u8]) -> Result<(), Error> {
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

pub(super) fn read_from(path: &Path) -> Result<Environment, Error> {
    let block = fs::read(path).map_err(Error::io(format!("read {}", path.display())))?;
    Environment::parse(&block).map_err(|damage| damaged(path, &damage))
}

fn damaged(path: &Path, damage: &super::Damage) -> Error {
    let why = io::Error::new(io::ErrorKind::InvalidData, damage.to_string());
    Error::io(format!("use {}", path.display()))(why)
}

fn remount(flags: MountFlags) -> Result<(), Error> {
    mount_remount(BOOT, flags, "").map_err(Error::io(format!("mount {BOOT} anew")))
}

fn path() -> PathBuf {
    Path::new(BOOT).join(FILE)
}
