//! Writes to the boot volume of a freshly flashed disk without mounting it, because the kernel may
//! not have read the new partition table.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;

use fatfs::{FileSystem, FsOptions};
use gpt::disk::LogicalBlockSize;
use rustix::fs::{Advice, fadvise};

/// Name of the boot volume's partition.
const BOOT: &str = "TINBOX";
/// File name of the configuration.
const CONFIG: &str = "box.toml";

/// Reason why the configuration is not on the disk.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The disk has no boot volume.
    #[error("the image has no partition {BOOT}")]
    NoVolume,
    /// The partition table cannot be read.
    #[error("the partition table cannot be read: {0}")]
    Table(String),
    /// The volume is damaged or full, or the disk fails.
    #[error("cannot write box.toml to the volume {BOOT}: {0}")]
    Volume(#[from] io::Error),
    /// The disk returns other bytes than were written.
    #[error("the disk returned another {CONFIG} than was written")]
    Differs,
}

/// Writes `text` to the boot volume of `disk` as `box.toml`, and reads the file back.
///
/// # Errors
/// The volume cannot be found or written; the configuration is not on the disk.
pub fn configure(disk: &File, text: &str) -> Result<(), Failure> {
    let volume = Volume::find(disk)?;
    let open = || FileSystem::new(volume.clone(), FsOptions::new().update_accessed_date(false));
    let files = open()?;
    let mut file = files.root_dir().create_file(CONFIG)?;
    file.truncate()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    drop(file);
    files.unmount()?;
    disk.sync_all()?;
    // Else the kernel's memory answers, and not the disk.
    let _ = fadvise(disk, 0, None, Advice::DontNeed);
    let mut found = Vec::new();
    open()?.root_dir().open_file(CONFIG)?.read_to_end(&mut found)?;
    if found == text.as_bytes() { Ok(()) } else { Err(Failure::Differs) }
}

/// Partition of the disk as a readable and writable file.
#[derive(Debug, Clone)]
struct Volume<'a> {
    disk: &'a File,
    start: u64,
    size: u64,
    at: u64,
}

impl<'a> Volume<'a> {
    fn find(disk: &'a File) -> Result<Self, Failure> {
        let table = |error: gpt::GptError| Failure::Table(error.to_string());
        let copy = disk.try_clone()?;
        // The second table is where the image ends, and not the disk; the box moves it.
        let config = gpt::GptConfig::new().writable(false).only_valid_headers(false);
        let config = config.logical_block_size(LogicalBlockSize::Lb512);
        let found = config.open_from_device(copy).map_err(table)?;
        let boot = found.partitions().values().find(|part| part.name == BOOT);
        let boot = boot.ok_or(Failure::NoVolume)?;
        let start = boot.bytes_start(LogicalBlockSize::Lb512).map_err(Failure::Volume)?;
        let size = boot.bytes_len(LogicalBlockSize::Lb512).map_err(Failure::Volume)?;
        Ok(Self { disk, start, size, at: 0 })
    }

    /// Returns how many of the `wanted` bytes fit in the rest of the partition.
    fn room(&self, wanted: usize) -> usize {
        usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX).min(wanted)
    }
}

impl Read for Volume<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.room(buffer.len());
        let count = self.disk.read_at(&mut buffer[..room], self.start + self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Write for Volume<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room(bytes.len());
        let count = self.disk.write_at(&bytes[..room], self.start + self.at)?;
        self.at += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Volume<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
        };
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "before the volume's start");
        self.at = at.ok_or_else(outside)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests;
