//! The system calls that no safe wrapper offers. All of the crate's unsafe code is here.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;

/// `BLKRRPART` of `linux/fs.h`: `_IO(0x12, 95)`.
const BLKRRPART: libc::Ioctl = 0x125f;
/// `BLKDISCARD` of `linux/fs.h`: `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;
/// `KEXEC_FILE_NO_INITRAMFS` of `linux/kexec.h`.
const KEXEC_FILE_NO_INITRAMFS: libc::c_ulong = 4;

/// Make the kernel read the disk's partition table again.
pub fn reread_partitions(disk: &File) -> io::Result<()> {
    // SAFETY: BLKRRPART takes no argument and touches no memory of ours; the descriptor is open
    // for as long as the borrow of `disk`.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKRRPART) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Discard a range of a block device.
pub fn discard(disk: &File, offset: u64, length: u64) -> io::Result<()> {
    let range = [offset, length];
    // SAFETY: BLKDISCARD reads two 64-bit numbers, which `range` holds for the whole call; the
    // descriptor is open for as long as the borrow of `disk`.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Load a kernel that `reboot(LINUX_REBOOT_CMD_KEXEC)` will jump into.
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

/// What a program finds mounted in its root: type and place.
const KERNEL_FOLDERS: [(&CStr, &CStr); 3] =
    [(c"devtmpfs", c"/dev"), (c"proc", c"/proc"), (c"sysfs", c"/sys")];

/// Make `command` run with `root` as its root, in a process group of its own, and with the kernel's
/// folders mounted where nobody else sees them; they go with the last process of it.
pub fn confine(command: &mut Command, root: &'static CStr) {
    command.process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls with constant strings: it
    // takes no lock, allocates nothing and touches no memory that another thread could hold. The
    // child has one thread, so no other loses its mounts by unshare.
    unsafe {
        command.pre_exec(move || {
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            rustix::mount::mount_change(c"/", private)?;
            rustix::process::chroot(root)?;
            rustix::process::chdir(c"/")?;
            for (kind, place) in KERNEL_FOLDERS {
                // From within the new root, so that no link of its leads out.
                match rustix::mount::mount(kind, place, kind, MountFlags::empty(), None) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            Ok(())
        });
    }
}
