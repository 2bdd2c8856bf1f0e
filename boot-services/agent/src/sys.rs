//! System calls without a safe wrapper. All unsafe code of the crate is in this file.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::mount::MountFlags;
use rustix::thread::{Gid, Uid, UnshareFlags};

/// `KEXEC_FILE_NO_INITRAMFS` of `linux/kexec.h`.
const KEXEC_FILE_NO_INITRAMFS: libc::c_ulong = 4;

/// Makes a mount read-only, with all mounts below it (mount_setattr(2)).
pub fn make_read_only(mounted: &File) -> io::Result<()> {
    // `struct mount_attr` of `linux/mount.h`: flags to set, flags to clear, propagation, user
    // namespace. 1 is `MOUNT_ATTR_RDONLY`.
    let change: [u64; 4] = [1, 0, 0, 0];
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the kernel reads an empty text and four numbers of the size that is given; both
    // live during the call, and the descriptor is open for as long as the borrow of `mounted`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mounted.as_raw_fd(),
            c"".as_ptr(),
            flags,
            change.as_ptr(),
            size_of_val(&change),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Loads a kernel for `reboot(LINUX_REBOOT_CMD_KEXEC)`.
pub fn kexec_load(kernel: &File, initrd: Option<&File>, command_line: &CStr) -> io::Result<()> {
    let length = command_line.to_bytes_with_nul().len();
    let (initrd, flags) = match initrd {
        Some(file) => (file.as_raw_fd(), 0),
        None => (-1, KEXEC_FILE_NO_INITRAMFS),
    };
    // SAFETY: both descriptors are open for the duration of the borrows; the pointer and length
    // describe `command_line` with its final NUL, which the kernel only reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_kexec_file_load,
            libc::c_long::from(kernel.as_raw_fd()),
            libc::c_long::from(initrd),
            length,
            command_line.as_ptr(),
            flags,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Moves this thread to new UTS and IPC namespaces. `with_pids`: its next child also becomes the
/// first process of a new PID namespace, and the kernel kills all others there when that process
/// ends. Afterwards the thread can start only one program and no thread.
pub fn own_processes(with_pids: bool) -> io::Result<()> {
    let pids = if with_pids { UnshareFlags::NEWPID } else { UnshareFlags::empty() };
    let flags = UnshareFlags::NEWUTS | UnshareFlags::NEWIPC | pids;
    // SAFETY: safe code relies on none of these being shared between threads, and descriptors stay.
    unsafe { rustix::thread::unshare_unsafe(flags)? };
    Ok(())
}

/// Root folder, working directory and user of a container's program.
pub struct SandboxProcess {
    /// Root folder of a mount in the calling thread's mount namespace.
    pub root: File,
    /// True if the child must mount `/proc`, because it has its own PID namespace.
    pub mount_proc: bool,
    /// Working directory in the container.
    pub folder: CString,
    /// User id of the program.
    pub uid: u32,
    /// Primary group id of the program.
    pub gid: u32,
    /// Supplementary group ids of the program.
    pub groups: Vec<u32>,
}

/// Makes `command` run in the container, as a session leader. The calling thread must have called
/// [`imaging::sys::own_mounts`], because the child moves the container's mount to `/` in the
/// thread's mount namespace.
pub fn enter_sandbox(command: &mut Command, process: SandboxProcess) {
    let SandboxProcess { root, mount_proc, folder, uid, gid, groups } = process;
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
    // SAFETY: between fork and exec the closure only makes system calls with what it owns: it takes
    // no lock, allocates nothing and touches no memory that another thread could hold. The child
    // has one thread, so that its user is the thread's.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::fchdir(&root)?;
            // pivot_root(2) does not work on an initramfs.
            rustix::mount::mount_move(c".", c"/")?;
            rustix::process::chroot(c".")?;
            rustix::process::chdir(c"/")?;
            if mount_proc {
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                rustix::mount::mount(c"proc", c"/proc", c"proc", flags, None)?;
            }
            rustix::process::chdir(folder.as_c_str())?;
            rustix::thread::set_thread_groups(&groups)?;
            rustix::thread::set_thread_gid(gid)?;
            rustix::thread::set_thread_uid(uid)?;
            Ok(())
        });
    }
}
