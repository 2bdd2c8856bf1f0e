//! The system calls that no safe wrapper offers. All of the crate's unsafe code is here.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;

/// Swap to a device that holds a swap area (swapon(2)).
pub fn swap_on(device: &CStr) -> io::Result<()> {
    // SAFETY: the kernel reads the text up to its end, which a CStr has, and keeps nothing of it.
    let result = unsafe { libc::swapon(device.as_ptr(), 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
