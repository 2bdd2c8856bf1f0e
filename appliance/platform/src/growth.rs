//! The last partition of the box's disk, up to the disk's end: the image is made for the smallest
//! disk, and grows on the first start in its own.
//!
//! The table at the disk's end is whole and written before the first byte of the other changes, so
//! that at every moment one of the two is right; the kernel is told to look at both (`gpt` on its
//! command line), as firmware does.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::{GptConfig, GptDisk};

use crate::{Error, sys};

/// Bytes of a sector, as the table counts; images are made for disks that count so.
const SECTOR: u64 = 512;
/// Partitions end at multiples of so many sectors, as they begin (1 MiB).
const ALIGNED: u64 = 2048;

/// A partition that ends where its disk does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    /// The partition's number.
    number: u32,
    /// Its first byte.
    start: u64,
    /// Its bytes, before and now.
    from: u64,
    to: u64,
}

/// Grows the partition of the device `part`, if it is the last one and there is room behind it.
/// Returns its bytes before and after, or `None` when nothing was to be done.
///
/// # Errors
/// The disk cannot be read or written, or its table is none.
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

/// Grows the ext4 that is mounted at `place` to its partition's size; one that has it stays as it
/// is.
///
/// # Errors
/// The kernel refuses.
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

/// The disk that a partition lies on, and its number there.
fn whole(part: &Path) -> io::Result<(PathBuf, u32)> {
    let name = part.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = Path::new("/sys/class/block").join(name).canonicalize()?;
    let number = fs::read_to_string(folder.join("partition"))?;
    let number = number.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
    let disk = folder.parent().and_then(Path::file_name).ok_or(io::ErrorKind::NotFound)?;
    Ok((Path::new("/dev").join(disk), number))
}

/// Writes the tables in which the partition is as large as can be.
fn grow(file: &File, number: u32) -> io::Result<Option<Grown>> {
    let Some((grown, changes)) = plan(file, number)? else { return Ok(None) };
    // Everything of the copy first, and on the disk, before anything of the original.
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

/// What is to be written: the copy at the disk's end, then the original with the record that names
/// the whole disk.
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
    // The copy takes 33 sectors.
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

/// The table: the first, or that at the disk's end where a cut has left the first half-written.
fn open<D>(disk: &mut D) -> io::Result<GptDisk<Staged<&mut D>>>
where
    D: Read + Seek + std::fmt::Debug,
{
    let config = || GptConfig::new().writable(true).logical_block_size(LogicalBlockSize::Lb512);
    let first = Staged { disk: &mut *disk, at: 0, changed: Sectors::new() };
    if config().open_from_device(first).is_ok() {
        let first = Staged { disk, at: 0, changed: Sectors::new() };
        return config().open_from_device(first).map_err(io::Error::other);
    }
    // With no header to be found at its place.
    let changed = Sectors::from([(1, [0; SECTOR as usize])]);
    config().open_from_device(Staged { disk, at: 0, changed }).map_err(io::Error::other)
}

/// A disk whose changes are only noted.
#[derive(Debug)]
struct Staged<D> {
    disk: D,
    at: u64,
    changed: Sectors,
}

impl<D: Read + Seek> Staged<D> {
    fn sector(&mut self, sector: u64) -> io::Result<[u8; SECTOR as usize]> {
        if let Some(changed) = self.changed.get(&sector) {
            return Ok(*changed);
        }
        let mut bytes = [0; SECTOR as usize];
        self.disk.seek(SeekFrom::Start(sector * SECTOR))?;
        self.disk.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The sector of the place, and the part of it from there on that `wanted` bytes reach.
    fn here(&self, wanted: usize) -> (u64, std::ops::Range<usize>) {
        let within = usize::try_from(self.at % SECTOR).unwrap_or_default();
        let end = within.saturating_add(wanted).min(SECTOR as usize);
        (self.at / SECTOR, within..end)
    }
}

impl<D: Read + Seek> Read for Staged<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (sector, part) = self.here(buffer.len());
        let bytes = self.sector(sector)?;
        let part = &bytes[part];
        buffer[..part.len()].copy_from_slice(part);
        self.at += part.len() as u64;
        Ok(part.len())
    }
}

impl<D: Read + Seek> Write for Staged<D> {
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

impl<D: Read + Seek> Seek for Staged<D> {
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
