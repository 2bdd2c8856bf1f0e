//! Opens a path that must not lead out of a folder.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Maximum number of attempts. A rename or mount anywhere on the machine while the kernel resolves
/// a `..` makes openat2(2) fail with EAGAIN; the caller must repeat the call.
const TRIES: usize = 1000;

/// Calls `openat2`, and repeats the call while the kernel returns EAGAIN.
///
/// # Errors
/// Errors of the kernel, including the error for a path that leads out of the folder.
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
