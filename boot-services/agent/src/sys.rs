//! The two system calls that no safe wrapper offers. All of the crate's unsafe code is here.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `BLKRRPART` of `linux/fs.h`: `_IO(0x12, 95)`.
const BLKRRPART: libc::Ioctl = 0x125f;
/// `KEXEC_FILE_NO_INITRAMFS` of `linux/kexec.h`.
const KEXEC_FILE_NO_INITRAMFS: libc::c_ulong = 4;

/// Make the kernel read the disk's partition table again.
pub fn reread_partitions(disk: &File) -> io::Result<()> {
    // SAFETY: BLKRRPART takes no argument and touches no memory of ours; the descriptor is open
    // for as long as the borrow of `disk`.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKRRPART) };
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
