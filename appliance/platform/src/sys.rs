//! System calls for which no safe wrapper exists. All unsafe code of the crate is in this module.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

/// EtherType of LLDP (`ETH_P_LLDP` in `linux/if_ether.h`).
const LLDP: u16 = 0x88cc;
/// Multicast address of the nearest bridge (IEEE 802.1AB, table 7-1).
const NEAREST_BRIDGE: [u8; 8] = [0x01, 0x80, 0xc2, 0, 0, 0x0e, 0, 0];

/// Enables swapping to a device with a swap area (swapon(2)).
pub fn swap_on(device: &CStr) -> io::Result<()> {
    // SAFETY: the kernel reads the text up to its terminating zero, which a CStr has, and keeps no
    // pointer to it.
    let result = unsafe { libc::swapon(device.as_ptr(), 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens a non-blocking socket for the ARP frames of the interface with this index (packet(7)).
pub fn arp_socket(index: u32) -> io::Result<OwnedFd> {
    packet_socket(Type::RAW.nonblocking(), libc::ETH_P_ARP as u16, index).map(Into::into)
}

/// Opens a socket for the frames of one protocol and one interface.
fn packet_socket(kind: Type, protocol: u16, index: u32) -> io::Result<Socket> {
    // The protocol is set by bind. Otherwise frames of other interfaces could be queued before it.
    let socket = Socket::new(Domain::PACKET, kind, Some(Protocol::from(0)))?;
    let length = size_of::<libc::sockaddr_ll>();
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: a `sockaddr_ll` is plain numbers, fits a `sockaddr_storage` and is aligned as one.
    let link: &mut libc::sockaddr_ll = unsafe { storage.view_as() };
    link.sll_family = libc::AF_PACKET as libc::sa_family_t;
    link.sll_protocol = protocol.to_be();
    link.sll_ifindex = index.cast_signed();
    // SAFETY: the first `length` bytes of `storage` are the address that was written above.
    let address = unsafe { SockAddr::new(storage, length as libc::socklen_t) };
    socket.bind(&address)?;
    Ok(socket)
}

/// Opens a socket that receives the LLDP frames of one interface, without their Ethernet header.
pub fn lldp_socket(index: u32) -> io::Result<Socket> {
    let socket = packet_socket(Type::DGRAM, LLDP, index)?;
    let request = libc::packet_mreq {
        mr_ifindex: index.cast_signed(),
        mr_type: libc::PACKET_MR_MULTICAST as libc::c_ushort,
        mr_alen: 6,
        mr_address: NEAREST_BRIDGE,
    };
    // SAFETY: the kernel reads `request` with its size, and `request` outlives the call. The
    // descriptor is open for as long as `socket`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Lets the clock run faster, or slower for a negative value, until the clock has moved by `micros`
/// (adjtimex(2)). The rate is 500 ppm, one second in half an hour.
pub fn slew(micros: i64) -> io::Result<()> {
    // SAFETY: a timex is numbers and padding, for which all zeros are a value.
    let mut change: libc::timex = unsafe { std::mem::zeroed() };
    change.modes = libc::ADJ_OFFSET_SINGLESHOT;
    change.offset = micros;
    // SAFETY: the kernel reads and writes the one timex, which lives during the call.
    let result = unsafe { libc::adjtimex(&raw mut change) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns true if a time service keeps the clock synchronized (adjtimex(2)). The kernel clears the
/// state by itself after a long time without updates.
pub fn clock_is_kept() -> io::Result<bool> {
    // SAFETY: a timex is numbers and padding, for which all zeros are a value.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the one timex, which lives during the call; no mode is set, so that
    // nothing is changed.
    let result = unsafe { libc::adjtimex(&raw mut timex) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0)
}

/// Request numbers of the ioctl for partitions (`linux/blkpg.h`).
const BLKPG: libc::Ioctl = 0x1269;
const BLKPG_RESIZE_PARTITION: libc::c_int = 3;
/// `struct blkpg_partition` of `linux/blkpg.h`.
#[repr(C)]
struct BlockPartition {
    start: libc::c_longlong,
    length: libc::c_longlong,
    number: libc::c_int,
    names: [u8; 128],
}
/// `struct blkpg_ioctl_arg` of `linux/blkpg.h`.
#[repr(C)]
struct BlockChange {
    op: libc::c_int,
    flags: libc::c_int,
    length: libc::c_int,
    data: *mut BlockPartition,
}

/// Reports the new size of a partition to the kernel. `start` and `length` are in bytes. The
/// partition may be in use.
pub fn resize_partition(disk: &File, number: u32, (start, length): (u64, u64)) -> io::Result<()> {
    let mut partition = BlockPartition {
        start: i64::try_from(start).map_err(io::Error::other)?,
        length: i64::try_from(length).map_err(io::Error::other)?,
        number: i32::try_from(number).map_err(io::Error::other)?,
        names: [0; 128],
    };
    let change = BlockChange {
        op: BLKPG_RESIZE_PARTITION,
        flags: 0,
        length: i32::try_from(size_of::<BlockPartition>()).map_err(io::Error::other)?,
        data: &raw mut partition,
    };
    // SAFETY: BLKPG reads a blkpg_ioctl_arg and the blkpg_partition that it points to; both have
    // the kernel's layout and live during the call.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKPG, &raw const change) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Request number of `EXT4_IOC_RESIZE_FS` in `fs/ext4/ext4.h`: `_IOW('f', 16, __u64)`.
const EXT4_RESIZE: libc::Ioctl = 0x4008_6610;

/// Grows the mounted ext4 file system of this folder to `blocks` blocks. The size never shrinks.
pub fn resize_ext4(folder: &File, blocks: u64) -> io::Result<()> {
    // SAFETY: the kernel reads one 64-bit number, which lives during the call.
    let result = unsafe { libc::ioctl(folder.as_raw_fd(), EXT4_RESIZE, &raw const blocks) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Request number of `FITRIM` in `linux/fs.h`: `_IOWR('X', 121, struct fstrim_range)`.
const TRIM: libc::Ioctl = 0xc018_5879u32 as libc::Ioctl;
/// `struct fstrim_range` of `linux/fs.h`.
#[repr(C)]
struct TrimRange {
    start: u64,
    length: u64,
    least: u64,
}

/// Discards the free blocks in the mounted file system of this folder (TRIM).
pub fn trim(folder: &File) -> io::Result<()> {
    let mut range = TrimRange { start: 0, length: u64::MAX, least: 0 };
    // SAFETY: the kernel reads and writes one fstrim_range, which has its layout and lives during
    // the call.
    let result = unsafe { libc::ioctl(folder.as_raw_fd(), TRIM, &raw mut range) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Request number of `FIBMAP` in `linux/fs.h`: `_IO(0x00, 1)`.
const BLOCK_OF: libc::Ioctl = 1;

/// Returns the block of the file system that holds block `index` of a file, or 0 for a hole.
pub fn block_of(file: &File, index: i32) -> io::Result<u32> {
    let mut block = index;
    // SAFETY: the kernel reads and writes one int, which lives during the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), BLOCK_OF, &raw mut block) };
    if result == 0 { Ok(block.cast_unsigned()) } else { Err(io::Error::last_os_error()) }
}

/// Request number of `WDIOC_SETTIMEOUT` in `linux/watchdog.h`: `_IOWR('W', 6, int)`.
const WATCHDOG_SET_TIMEOUT: libc::Ioctl = 0xc004_5706u32 as libc::Ioctl;

/// Sets the timeout of the watchdog in seconds. Returns the timeout that the driver accepted, which
/// may differ.
pub fn watchdog_timeout(watchdog: &File, seconds: i32) -> io::Result<i32> {
    let mut seconds: libc::c_int = seconds;
    // SAFETY: the kernel reads and writes one int, which lives during the call.
    let result =
        unsafe { libc::ioctl(watchdog.as_raw_fd(), WATCHDOG_SET_TIMEOUT, &raw mut seconds) };
    if result == 0 { Ok(seconds) } else { Err(io::Error::last_os_error()) }
}

/// `struct landlock_path_beneath_attr` of `linux/landlock.h`.
#[repr(C, packed)]
struct PathBeneath {
    access: u64,
    folder: libc::c_int,
}

/// Returns the Landlock version of the kernel.
pub fn landlock_version() -> io::Result<u32> {
    const ASK_VERSION: u32 = 1;
    let none = std::ptr::null::<u8>();
    // SAFETY: with this flag the kernel takes no pointer and returns a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, ASK_VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

/// Creates an empty Landlock ruleset that denies the accesses `handled` by default.
pub fn landlock_rules(handled: u64) -> io::Result<OwnedFd> {
    let (attribute, size) = (&raw const handled, size_of::<u64>());
    // SAFETY: the kernel reads the first version of landlock_ruleset_attr, which is one 64-bit
    // number and lives during the call.
    let rules = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attribute, size, 0_u32) };
    let rules = libc::c_int::try_from(rules).map_err(io::Error::other)?;
    if rules < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor to this function, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(rules) })
}

/// Allows `access` on `place` and everything below it.
pub fn landlock_grant(rules: &OwnedFd, place: &OwnedFd, access: u64) -> io::Result<()> {
    const PATH_BENEATH: u32 = 1;
    let rule = PathBeneath { access, folder: place.as_raw_fd() };
    let (call, rules) = (libc::SYS_landlock_add_rule, rules.as_raw_fd());
    // SAFETY: the kernel reads one landlock_path_beneath_attr, which has its layout and lives
    // during the call; both descriptors are open.
    let result = unsafe { libc::syscall(call, rules, PATH_BENEATH, &raw const rule, 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Restricts this thread, and all threads that it starts later, to `rules` permanently.
pub fn landlock_restrict(rules: &OwnedFd) -> io::Result<()> {
    // SAFETY: the call takes two numbers, of which the first is an open descriptor.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes ownership of an inherited descriptor by its number. No other code may own the descriptor,
/// so this function may be called once for each number.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(2) takes numbers, and fails for a descriptor that is not open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and by the contract above the caller is its only owner, so no
    // other code closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
