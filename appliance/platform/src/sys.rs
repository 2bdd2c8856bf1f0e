//! The system calls that no safe wrapper offers. All of the crate's unsafe code is here.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Swap to a device that holds a swap area (swapon(2)).
pub fn swap_on(device: &CStr) -> io::Result<()> {
    // SAFETY: the kernel reads the text up to its end, which a CStr has, and keeps nothing of it.
    let result = unsafe { libc::swapon(device.as_ptr(), 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket for the ARP frames of one interface, by its number (packet(7)); it does not block.
pub fn arp_socket(interface: u32) -> io::Result<OwnedFd> {
    let protocol = u16::try_from(libc::ETH_P_ARP).unwrap_or_default().to_be();
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: it takes three numbers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(protocol)) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave this number to us, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).unwrap_or_default(),
        sll_protocol: protocol,
        sll_ifindex: i32::try_from(interface).map_err(io::Error::other)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = u32::try_from(size_of::<libc::sockaddr_ll>()).map_err(io::Error::other)?;
    // SAFETY: the address is a sockaddr_ll of that length, and lives during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Let the clock run faster or slower until it has made up for `micros` (adjtimex(2)): 500 ppm, a
/// second in half an hour.
pub fn slew(micros: i64) -> io::Result<()> {
    // SAFETY: a timex is numbers and padding, for which all zeros are a value.
    let mut change: libc::timex = unsafe { std::mem::zeroed() };
    change.modes = libc::ADJ_OFFSET_SINGLESHOT;
    change.offset = micros;
    // SAFETY: the kernel reads and writes the one timex, which lives during the call.
    let result = unsafe { libc::adjtimex(&raw mut change) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
