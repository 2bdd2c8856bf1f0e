//! Opens paths that must not lead out of a folder, with openat2(2).

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Maximum number of attempts. openat2(2) fails with EAGAIN if a rename or mount, anywhere on the
/// machine, races with the resolution of `..`.
const TRIES: usize = 1000;

/// Calls `openat2`, and repeats the call while the kernel returns EAGAIN.
///
/// # Errors
/// The kernel's error number: EXDEV for a path that leads out of the folder, EAGAIN after 1000
/// attempts.
pub fn open<P: Arg + Copy>(
    folder: impl AsFd,
    path: P,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<File, Errno> {
    let attempt = || rustix::fs::openat2(&folder, path, flags, mode, resolve);
    let mut opened = attempt();
    for _ in 1..TRIES {
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
        opened = attempt();
    }
    opened.map(File::from)
}
