//! Growth of the last partition to the end of the box's disk. The image is made for the smallest
//! disk, and grows at the first start on a larger one.
//!
//! The backup GPT at the end of the disk is written completely before the first byte of the primary
//! GPT changes. One of the two tables is therefore valid at any time. The option `gpt` on the
//! kernel's command line makes the kernel use both tables, as firmware does.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::{GptConfig, GptDisk};

use crate::{Error, sys};

/// Bytes of a logical sector in the GPT. Images use only this size.
const SECTOR: u64 = 512;
/// Alignment of a partition's start and end in sectors (1 MiB).
const ALIGNED: u64 = 2048;

/// Result of growing the last partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    /// Number of the partition in the GPT.
    number: u32,
    /// Offset of the partition's first byte on the disk.
    start: u64,
    /// Sizes in bytes before and after the growth.
    from: u64,
    to: u64,
}

/// Grows the partition of the device `part` if it is the last partition and free space follows.
/// Returns its size in bytes before and after, or `None` if the partition cannot grow.
///
/// # Errors
/// The disk cannot be read or written, or has no valid GPT.
pub fn partition(part: &Path) -> Result<Option<(u64, u64)>, Error> {
    let attempt = || {
        let (disk, number) = whole(part)?;
        let file = OpenOptions::new().read(true).write(true).open(&disk)?;
        let Some(grown) = grow(&file, number)? else { return Ok(None) };
        sys::resize_partition(&file, grown.number, (grown.start, grown.to))?;
        Ok(Some((grown.from, grown.to)))
    };
    attempt().map_err(Error::io::<io::Error>(format!("grow {}", part.display())))
}

/// Grows the ext4 file system mounted at `place` to the size of its partition `part`. A file system
/// that already has this size stays unchanged.
///
/// # Errors
/// The partition cannot be read, or the kernel refuses the resize.
pub fn file_system(place: &str, part: &Path) -> Result<(), Error> {
    let attempt = || {
        let bytes = File::open(part)?.seek(SeekFrom::End(0))?;
        let folder = File::open(place)?;
        let block = rustix::fs::fstatfs(&folder)?.f_bsize;
        let block = u64::try_from(block).ok().filter(|block| *block > 0);
        let blocks = bytes / block.ok_or(io::ErrorKind::InvalidData)?;
        sys::resize_ext4(&folder, blocks)
    };
    attempt().map_err(Error::io::<io::Error>(format!("grow the file system of {place}")))
}

/// Returns the disk of a partition, and the number of the partition on it.
fn whole(part: &Path) -> io::Result<(PathBuf, u32)> {
    let name = part.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = Path::new("/sys/class/block").join(name).canonicalize()?;
    let number = fs::read_to_string(folder.join("partition"))?;
    let number = number.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
    let disk = folder.parent().and_then(Path::file_name).ok_or(io::ErrorKind::NotFound)?;
    Ok((Path::new("/dev").join(disk), number))
}

/// Writes both partition tables, with the partition grown. `None`: the partition cannot grow.
fn grow(file: &File, number: u32) -> io::Result<Option<Grown>> {
    let Some((grown, changes)) = plan(file, number)? else { return Ok(None) };
    // The backup table must be on the disk before the primary table changes.
    for pass in changes {
        for (sector, bytes) in pass {
            let mut file = file;
            file.seek(SeekFrom::Start(sector * SECTOR))?;
            file.write_all(&bytes)?;
        }
        file.sync_all()?;
    }
    Ok(Some(grown))
}

type Sectors = BTreeMap<u64, [u8; SECTOR as usize]>;

/// Returns the sectors to write: first the backup table at the end of the disk, then the primary
/// table. The protective MBR covers the whole disk. Returns `None` if the partition cannot grow.
fn plan<D>(mut disk: D, number: u32) -> io::Result<Option<(Grown, [Sectors; 2])>>
where
    D: Read + Seek + std::fmt::Debug,
{
    let sectors = disk.seek(SeekFrom::End(0))? / SECTOR;
    let mut table = open(&mut disk)?;
    let mut parts = table.partitions().clone();
    let behind = parts.values().map(|part| part.last_lba).max();
    let Some(part) = parts.get_mut(&number) else { return Ok(None) };
    let (first, last) = (part.first_lba, part.last_lba);
    // The backup table takes 33 sectors.
    let end = sectors.saturating_sub(34) / ALIGNED * ALIGNED;
    if behind != Some(last) || end <= last + 1 {
        return Ok(None);
    }
    part.last_lba = end - 1;
    table.update_partitions(parts).map_err(io::Error::other)?;
    let mut staged = table.write().map_err(io::Error::other)?;
    let records = u32::try_from(sectors - 1).unwrap_or(u32::MAX);
    ProtectiveMBR::with_lb_size(records).overwrite_lba0(&mut staged).map_err(io::Error::other)?;
    let copy = staged.changed.split_off(&end);
    let bytes = |from: u64, to: u64| (to - from) * SECTOR;
    let (from, to) = (bytes(first, last + 1), bytes(first, end));
    let grown = Grown { number, start: first * SECTOR, from, to };
    Ok(Some((grown, [copy, staged.changed])))
}

/// Opens the primary table, or the backup table if an interrupted write damaged the primary one.
fn open<D>(disk: &mut D) -> io::Result<GptDisk<StagedDisk<&mut D>>>
where
    D: Read + Seek + std::fmt::Debug,
{
    let config = || GptConfig::new().writable(true).logical_block_size(LogicalBlockSize::Lb512);
    let first = StagedDisk { disk: &mut *disk, at: 0, changed: Sectors::new() };
    if config().open_from_device(first).is_ok() {
        let first = StagedDisk { disk, at: 0, changed: Sectors::new() };
        return config().open_from_device(first).map_err(io::Error::other);
    }
    // An empty sector instead of the primary header makes the crate use the backup table.
    let changed = Sectors::from([(1, [0; SECTOR as usize])]);
    config().open_from_device(StagedDisk { disk, at: 0, changed }).map_err(io::Error::other)
}

/// Disk for the crate `gpt` whose changes stay in memory, by sector.
#[derive(Debug)]
struct StagedDisk<D> {
    disk: D,
    at: u64,
    changed: Sectors,
}

impl<D: Read + Seek> StagedDisk<D> {
    fn sector(&mut self, sector: u64) -> io::Result<[u8; SECTOR as usize]> {
        if let Some(changed) = self.changed.get(&sector) {
            return Ok(*changed);
        }
        let mut bytes = [0; SECTOR as usize];
        self.disk.seek(SeekFrom::Start(sector * SECTOR))?;
        self.disk.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the current sector, and the range of `wanted` bytes within this sector.
    fn here(&self, wanted: usize) -> (u64, std::ops::Range<usize>) {
        let within = usize::try_from(self.at % SECTOR).unwrap_or_default();
        let end = within.saturating_add(wanted).min(SECTOR as usize);
        (self.at / SECTOR, within..end)
    }
}

impl<D: Read + Seek> Read for StagedDisk<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (sector, part) = self.here(buffer.len());
        let bytes = self.sector(sector)?;
        let part = &bytes[part];
        buffer[..part.len()].copy_from_slice(part);
        self.at += part.len() as u64;
        Ok(part.len())
    }
}

impl<D: Read + Seek> Write for StagedDisk<D> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let (sector, part) = self.here(buffer.len());
        let mut bytes = self.sector(sector)?;
        let count = part.len();
        bytes[part].copy_from_slice(&buffer[..count]);
        self.changed.insert(sector, bytes);
        self.at += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Read + Seek> Seek for StagedDisk<D> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(_) => self.disk.seek(to)?,
            SeekFrom::Current(by) => {
                self.at.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?
            }
        };
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests;
