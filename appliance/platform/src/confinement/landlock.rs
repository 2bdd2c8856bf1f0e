//! Folders to which a process may write, enforced by Landlock (landlock(7)). The process cannot
//! write, create, remove or execute any other file, and cannot mount. Reading is not restricted.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Limits;
use crate::{Error, sys};

/// Bits of `linux/landlock.h`, `LANDLOCK_ACCESS_FS_*`.
mod access {
    pub const EXECUTE: u64 = 1;
    pub const WRITE_FILE: u64 = 1 << 1;
    pub const REMOVE_DIR: u64 = 1 << 4;
    pub const REMOVE_FILE: u64 = 1 << 5;
    pub const MAKE_CHAR: u64 = 1 << 6;
    pub const MAKE_DIR: u64 = 1 << 7;
    pub const MAKE_REG: u64 = 1 << 8;
    pub const MAKE_SOCK: u64 = 1 << 9;
    pub const MAKE_FIFO: u64 = 1 << 10;
    pub const MAKE_BLOCK: u64 = 1 << 11;
    pub const MAKE_SYM: u64 = 1 << 12;
    pub const REFER: u64 = 1 << 13;
    pub const TRUNCATE: u64 = 1 << 14;
    pub const IOCTL_DEV: u64 = 1 << 15;
}

/// Minimum Landlock version. Since version 2 (Linux 5.19), a file can be moved to another folder,
/// as a restore does.
const VERSION_MIN: u32 = 2;

/// Returns the accesses that Landlock denies unless a rule allows them, and `version` knows.
fn handled(version: u32) -> u64 {
    let since = |first: u32, bit: u64| if version >= first { bit } else { 0 };
    access::EXECUTE
        | access::WRITE_FILE
        | access::REMOVE_DIR
        | access::REMOVE_FILE
        | access::MAKE_CHAR
        | access::MAKE_DIR
        | access::MAKE_REG
        | access::MAKE_SOCK
        | access::MAKE_FIFO
        | access::MAKE_BLOCK
        | access::MAKE_SYM
        | access::REFER
        | since(3, access::TRUNCATE)
        | since(5, access::IOCTL_DEV)
}

/// Access rights that apply to an existing file.
const OF_FILES: u64 = access::WRITE_FILE | access::TRUNCATE | access::IOCTL_DEV;
/// Access rights that writable folders never get: executing files and creating device nodes.
const NEVER: u64 = access::EXECUTE | access::MAKE_CHAR | access::MAKE_BLOCK;

/// Restricts this thread to `limits`. Returns the Landlock version of the kernel.
pub(super) fn enter(limits: &Limits) -> Result<u32, Error> {
    let version = sys::landlock_version().map_err(Error::io("use Landlock"))?;
    if version < VERSION_MIN {
        let old = io::Error::other(format!("its version {version} does not support moving files"));
        return Err(Error::io("use Landlock")(old));
    }
    let handled = handled(version);
    let rules = sys::landlock_rules(handled).map_err(Error::io("create the Landlock rules"))?;
    let granted = [
        (&limits.writable, handled & !NEVER),
        (&limits.devices, handled & OF_FILES),
        (&limits.programs, handled & access::EXECUTE),
    ];
    for (paths, access) in granted {
        for path in paths {
            grant(&rules, path, access).map_err(Error::io(format!("allow {}", path.display())))?;
        }
    }
    sys::landlock_restrict(&rules).map_err(Error::io("enter Landlock"))?;
    Ok(version)
}

/// Adds a rule for `path`. A missing path needs no rule.
fn grant(rules: &std::os::fd::OwnedFd, path: &Path, access: u64) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let place = match rustix::fs::open(&name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        opened => opened?,
    };
    let is_folder = path.is_dir();
    let access = if is_folder { access } else { access & (OF_FILES | access::EXECUTE) };
    sys::landlock_grant(rules, &place, access)
}

#[cfg(test)]
mod tests {
    use super::{NEVER, access, handled};

    #[test]
    fn a_version_is_asked_for_what_it_knows() {
        for (version, newest) in [(2, access::REFER), (4, access::TRUNCATE), (7, access::IOCTL_DEV)]
        {
            let handled = handled(version);
            assert_eq!(handled & newest, newest, "{version}");
            assert!(handled < newest << 1, "{version}");
            assert_eq!(handled & NEVER, NEVER, "nothing is started or made a device");
        }
    }
}
