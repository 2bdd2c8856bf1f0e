//! Opening a path that must not lead out of a folder.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Whoever renames or mounts something, anywhere on the machine, while the kernel goes up a `..`,
/// makes it give up, and asks the caller to try again (openat2(2), EAGAIN). So often it does.
const TRIES: usize = 1000;

/// `openat2`, again for as long as the kernel wants it.
///
/// # Errors
/// As the kernel has them; where the path leads out, that too.
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
