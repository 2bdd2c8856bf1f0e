//! System calls without a safe wrapper. All unsafe code of the crate is in this file.
#![allow(unsafe_code)]

pub mod chroot;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::mount::MountPropagationFlags;
use rustix::thread::UnshareFlags;

use chroot::ProgramRoot;

/// `BLKRRPART` of `linux/fs.h`: `_IO(0x12, 95)`.
const BLKRRPART: libc::Ioctl = 0x125f;
/// `BLKROSET` of `linux/fs.h`: `_IO(0x12, 93)`.
const BLKROSET: libc::Ioctl = 0x125d;
/// `BLKDISCARD` of `linux/fs.h`: `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;
/// `NVME_IOCTL_ADMIN_CMD` of `linux/nvme_ioctl.h`: `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_ADMIN: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;
/// `SG_IO` of `scsi/sg.h`.
const SG_IO: libc::Ioctl = 0x2285;

/// Makes the kernel reread the disk's partition table.
pub fn reread_partitions(disk: &File) -> io::Result<()> {
    // SAFETY: BLKRRPART takes no argument and touches no memory of this process. The descriptor
    // is open for as long as the borrow of `disk`.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKRRPART) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel refuse all writes to a block device (BLKROSET).
pub fn set_read_only(disk: &File) -> io::Result<()> {
    let yes: libc::c_int = 1;
    // SAFETY: BLKROSET reads one `int`, which `yes` is for the whole call; the descriptor is open
    // for as long as the borrow of `disk`.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKROSET, &raw const yes) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Discards a range of a block device; `offset` and `length` in bytes.
pub fn discard(disk: &File, offset: u64, length: u64) -> io::Result<()> {
    let range = [offset, length];
    // SAFETY: BLKDISCARD reads two 64-bit numbers, which `range` holds for the whole call; the
    // descriptor is open for as long as the borrow of `disk`.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct NvmeCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    words_10_15: [u32; 6],
    timeout_millis: u32,
    result: u32,
}

/// Admin command for an NVMe controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeAdmin {
    /// Opcode of the command.
    pub opcode: u8,
    /// Namespace id (NSID); `u32::MAX` for all namespaces.
    pub namespace: u32,
    /// Command dwords 10 and 11. The later dwords are 0.
    pub words_10_11: [u32; 2],
    /// Timeout, after which the kernel resets the controller.
    pub timeout: Duration,
}

/// Sends an admin command to an NVMe controller and fills `answer`. Returns the NVMe status, 0 for
/// success.
pub fn nvme_admin(controller: &File, asked: &NvmeAdmin, answer: &mut [u8]) -> io::Result<u16> {
    let length = u32::try_from(answer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let [word_10, word_11] = asked.words_10_11;
    let mut command = NvmeCommand {
        opcode: asked.opcode,
        namespace: asked.namespace,
        address: if answer.is_empty() { 0 } else { answer.as_mut_ptr() as u64 },
        data_length: length,
        words_10_15: [word_10, word_11, 0, 0, 0, 0],
        timeout_millis: millis(asked.timeout),
        ..NvmeCommand::default()
    };
    // SAFETY: the kernel reads and writes `command`, whose layout and size are those of
    // `NVME_ADMIN`. It writes at most `data_length` bytes at `address`, which is the memory of
    // `answer`. Both outlive the call.
    let result = unsafe { libc::ioctl(controller.as_raw_fd(), NVME_ADMIN, &raw mut command) };
    u16::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// `sg_io_hdr_t` of `scsi/sg.h`, for a machine with 64-bit pointers.
#[repr(C)]
#[derive(Default)]
struct ScsiCommand {
    interface: i32,
    direction: i32,
    command_length: u8,
    sense_room: u8,
    pieces: u16,
    data_length: u32,
    data: u64,
    command: u64,
    sense: u64,
    timeout_millis: u32,
    flags: u32,
    id: i32,
    own: u64,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_length: u8,
    host_status: u16,
    driver_status: u16,
    residue: i32,
    duration: u32,
    info: u32,
}

/// Data transfer of a SCSI command.
#[derive(Debug)]
pub enum Transfer<'a> {
    /// Command without a data transfer.
    None,
    /// Data that the device returns.
    From(&'a mut [u8]),
    /// Data that is sent to the device.
    To(&'a [u8]),
}

/// Result of a SCSI command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiAnswer {
    /// SCSI status of the device, 0 for success.
    pub status: u8,
    /// Status of the host adapter, 0 for success.
    pub host: u16,
    /// Sense data of the device.
    pub sense: [u8; 32],
}

/// Sends a 16-byte command to a SCSI device (SG_IO).
pub fn scsi(
    device: &File,
    command: &[u8; 16],
    transfer: Transfer<'_>,
    timeout: Duration,
) -> io::Result<ScsiAnswer> {
    let (direction, data, length) = match transfer {
        Transfer::None => (-1, 0, 0),
        Transfer::To(bytes) => (-2, bytes.as_ptr() as u64, bytes.len()),
        Transfer::From(bytes) => (-3, bytes.as_mut_ptr() as u64, bytes.len()),
    };
    let mut sense = [0; 32];
    let mut asked = ScsiCommand {
        interface: b'S'.into(),
        direction,
        command_length: 16,
        sense_room: 32,
        data_length: u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?,
        data,
        command: command.as_ptr() as u64,
        sense: sense.as_mut_ptr() as u64,
        timeout_millis: millis(timeout),
        ..ScsiCommand::default()
    };
    // SAFETY: the kernel reads and writes `asked`, whose layout and size are those of
    // `sg_io_hdr_t`. It reads 16 bytes of `command` and writes at most 32 of `sense`. At `data` it
    // reads at most `data_length` bytes, or writes at most as many if the slice is mutable. All of
    // these outlive the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), SG_IO, &raw mut asked) };
    match result {
        0 => Ok(ScsiAnswer { status: asked.status, host: asked.host_status, sense }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes `command` run with another root folder, in its own process group and mount namespace. The
/// mounts in the root are visible only there and end with the last process.
pub fn confine(command: &mut Command, inside: ProgramRoot) {
    command.process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls, with strings that were
    // made before. It takes no lock, allocates nothing and touches no memory that another thread
    // could hold. The child has one thread, so no other thread loses its mounts by unshare.
    unsafe {
        command.pre_exec(move || {
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
            inside.enter()
        });
    }
}

/// Moves this thread to its own mount namespace, with private mounts.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: unshare is unsafe because safe code relies on descriptors that threads share. NEWNS
    // unshares only mounts, current folder and root, never descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)? };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(rustix::mount::mount_change(c"/", private)?)
}

/// `LOOP_CTL_GET_FREE` and `LOOP_CONFIGURE` of `linux/loop.h`.
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
/// `sizeof(struct loop_config)`, and the offset of the first byte of `info.lo_flags` in it.
const LOOP_CONFIG_BYTES: usize = 304;
const LOOP_CONFIG_FLAGS: usize = 60;
/// `LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR` of `linux/loop.h`.
const LOOP_FLAGS: u8 = 1 | 4;
/// Maximum number of attempts, because another process may take the free device first.
const LOOP_ATTEMPTS: u32 = 16;

/// Attaches `file` to a read-only loop device. Returns the open device and its path. The kernel
/// detaches the device at its last close.
pub fn attach(file: &File) -> io::Result<(File, CString)> {
    let control = File::open("/dev/loop-control")?;
    let mut config = [0_u8; LOOP_CONFIG_BYTES];
    config[..4].copy_from_slice(&file.as_raw_fd().to_ne_bytes());
    config[LOOP_CONFIG_FLAGS] = LOOP_FLAGS;
    for _ in 0..LOOP_ATTEMPTS {
        // SAFETY: LOOP_CTL_GET_FREE takes no argument and touches no memory of ours; the
        // descriptor is open for as long as `control`.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = format!("/dev/loop{number}");
        let device = File::open(&path)?;
        // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`. `config` has this size and lives
        // for the whole call. Its descriptor and that of `device` are open during the call.
        let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, config.as_ptr()) };
        if result == 0 {
            return Ok((device, CString::new(path)?));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) {
            return Err(error);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}
