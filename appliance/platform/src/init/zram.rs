//! Swap space in compressed memory, because swapping would wear out the flash of a small box.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::{Error, sys};

/// Block device of the compressed memory.
const DEVICE: &str = "/dev/zram0";
const SYSFS: &str = "/sys/block/zram0";
/// Divisor of the memory size: half of the memory may be swapped. Swapped data takes a third of it.
const PART: u64 = 2;
/// Size in bytes of a page, and of the header of a swap area.
const PAGE: usize = 4096;

/// Enables swapping to compressed memory. A kernel without the device is accepted.
///
/// # Errors
/// The kernel refuses one of the steps.
pub fn swap() -> Result<(), Error> {
    if !Path::new(SYSFS).is_dir() {
        return Ok(());
    }
    let attempt = || -> std::io::Result<()> {
        let size = memory(&fs::read_to_string("/proc/meminfo")?) / PART / PAGE as u64 * PAGE as u64;
        if size == 0 {
            return Ok(());
        }
        fs::write(format!("{SYSFS}/disksize"), size.to_string())?;
        let device = OpenOptions::new().write(true).open(DEVICE)?;
        write_header(&device, size)?;
        drop(device);
        sys::swap_on(c"/dev/zram0")
    };
    attempt().map_err(Error::io("enable swap in compressed memory"))
}

/// Returns the memory size in bytes from `/proc/meminfo`, or 0 if the line is missing.
fn memory(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or_default().saturating_mul(1024)
}

/// Writes the header that `mkswap` writes: `union swap_header` of `linux/swap.h`, version 1.
fn write_header(device: &File, size: u64) -> std::io::Result<()> {
    const VERSION: usize = 1024;
    const LAST_PAGE: usize = VERSION + 4;
    const SIGNATURE: &[u8] = b"SWAPSPACE2";
    let pages = u32::try_from(size / PAGE as u64).unwrap_or(u32::MAX);
    let mut header = [0; PAGE];
    header[VERSION..LAST_PAGE].copy_from_slice(&1_u32.to_ne_bytes());
    header[LAST_PAGE..LAST_PAGE + 4].copy_from_slice(&pages.saturating_sub(1).to_ne_bytes());
    header[PAGE - SIGNATURE.len()..].copy_from_slice(SIGNATURE);
    device.write_all_at(&header, 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{memory, write_header};

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(memory("MemTotal:        1000 kB\nMemFree: 1 kB\n"), 1_024_000);
        assert_eq!(memory("nonsense"), 0);
    }

    #[test]
    fn blkid_knows_the_header() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        write_header(file.as_file(), 1 << 20).unwrap();
        let blkid = Command::new("/sbin/blkid").arg("-p").arg(file.path()).output().unwrap();
        let text = String::from_utf8_lossy(&blkid.stdout).into_owned();
        assert!(text.contains("TYPE=\"swap\"") && text.contains("VERSION=\"1\""), "{text}");
    }
}
