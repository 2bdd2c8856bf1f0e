//! Requested reset, carried out before any other part of the box runs ([`crate::init::reset`]).

use std::path::Path;

use rustix::io::Errno;

use super::state::State;
use super::volumes::{self, Disks};
use super::{BOOT, CACHE, STATE};
use crate::Error;
use crate::init::reset::{self, Disk as _, EraseTargets, Host, Level};
use crate::slots::{BootVolume, Slot};

/// Carries out the requested reset, if there is one. `keys` are the names of keys in the box's
/// folder of the state volume.
///
/// Returns the reason for safe mode if a safe start is requested.
pub(super) fn go(keys: &[&str], disks: &mut Disks, trouble: &mut Vec<String>) -> Option<String> {
    let (folder, boot, cache) = (Path::new(STATE), Path::new(BOOT), Path::new(CACHE));
    let volume = BootVolume::own();
    let (level, why) = reset::look(folder, boot, &volume, trouble).level()?;
    let mut disk = Host { volume, running: running() };
    match level {
        Level::Safe => {
            let answered = disk.answer().map_err(|error| stdx::chain(&error)).and_then(|()| {
                let gone = disk.remove_file(&folder.join(reset::NOTE));
                gone.and_then(|()| disk.sync(folder)).map_err(|error| error.to_string())
            });
            if let Err(error) = answered {
                trouble.push(format!("the box will start in safe mode again: {error}"));
            }
            Some(why.to_owned())
        }
        Level::Factory => {
            eprintln!("tinbox: factory reset, because {why}; do not worry about the power");
            let places = EraseTargets { state: folder, cache, keys };
            match erase(&places, &mut disk, &mut disks.state, trouble) {
                Ok(()) if disks.cache_is_lost => trouble.push(format!(
                    "the factory reset erased all but {CACHE}, which cannot be mounted: images of \
                     the owner are still on the disk; flash the box again to erase them"
                )),
                Ok(()) => eprintln!("tinbox: factory reset: everything of the owner is erased"),
                Err(error) => {
                    let error = stdx::chain(&error);
                    trouble.push(format!("the factory reset continues at the next start: {error}"));
                }
            }
            None
        }
    }
}

/// Erases the data of the owner. A state volume that does not mount, or has a damaged file system,
/// is formatted again. The request on the boot volume stays until the volume is formatted.
fn erase(
    places: &EraseTargets<'_>,
    disk: &mut Host,
    state: &mut State,
    trouble: &mut Vec<String>,
) -> Result<(), Error> {
    if !state.is_damaged() {
        match reset::erase(places, disk) {
            Err(error) if is_damage(&error) => eprintln!("tinbox: {}", stdx::chain(&error)),
            done => return done,
        }
    }
    // A note on the state volume would be lost when the volume is formatted.
    reset::ask_on_boot_volume(&disk.volume, disk.running, Level::Factory)?;
    state.renew(trouble)?;
    reset::erase(places, disk)
}

/// True if the error means a damaged file system, not a full disk or a missing file.
fn is_damage(error: &Error) -> bool {
    let Error::Io { source, .. } = error else { return false };
    matches!(
        Errno::from_io_error(source),
        Some(Errno::IO | Errno::UCLEAN | Errno::BADMSG | Errno::ROFS)
    )
}

/// Returns the running slot, or slot A on a system without slots.
pub(crate) fn running() -> Slot {
    match volumes::slot() {
        Ok(Some(name)) if name == "b" => Slot::B,
        _ => Slot::A,
    }
}
