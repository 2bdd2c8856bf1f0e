//! Target disk of an action: opened exclusively, written with direct I/O, zeros punched as holes.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

pub use super::wait::wait_for;

use super::wait::LOOK;
use super::{preserve, select};
use crate::{Error, sys};

/// Maximum wait for a busy device, which the kernel's partition scan or an earlier action may use.
const RELEASE: Duration = Duration::from_secs(5);
/// Memory alignment for direct I/O, in bytes; enough for all common devices.
pub const MEMORY_ALIGN: usize = 4096;

/// Allowed kinds of targets. Regular files are for tests and benchmarks only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// Block devices only, for targets that a workflow names.
    BlockDevices,
    /// Block devices and regular files. A missing file is created; a file grows as needed.
    Files,
}

/// Open target disk, or a regular file.
#[derive(Debug)]
pub struct Disk {
    file: File,
    path: PathBuf,
    /// Size in bytes; `None` for a regular file, which grows.
    size: Option<u64>,
    /// Sector size in bytes. Offset and length of each write must be multiples of the sector size.
    sector: usize,
    /// True until the device has refused to punch a hole.
    punches: AtomicBool,
}

impl Disk {
    /// Opens `path` for writing. Blocks until the device has appeared, see [`wait_for`].
    ///
    /// # Errors
    /// [`Error::NoDisk`], [`Error::NoSuchDisk`], [`Error::NotBlockDevice`], [`Error::Preserved`],
    /// [`Error::DiskBusy`] (the device or one of its partitions is mounted), [`Error::Io`].
    pub fn open(path: &Path, accept: Accept) -> Result<Self, Error> {
        if accept == Accept::Files && !is_block_device(path) {
            return Self::open_file(path);
        }
        let path = &select::resolve(path)?;
        wait_for(path)?;
        if !is_block_device(path) {
            return Err(Error::NotBlockDevice { path: path.to_owned() });
        }
        preserve::check(path)?;
        let mut file = open_exclusively(path)?;
        let size = file
            .seek(SeekFrom::End(0))
            .map_err(Error::io(format!("read the size of {}", path.display())))?;
        let sector = rustix::fs::ioctl_blksszget(&file)
            .map_err(Error::io(format!("read the sector size of {}", path.display())))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            size: Some(size),
            sector: usize::try_from(sector).unwrap_or(512).max(512),
            punches: AtomicBool::new(true),
        })
    }

    fn open_file(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(Error::io(format!("open {}", path.display())))?;
        let punches = AtomicBool::new(true);
        Ok(Self { file, path: path.to_owned(), size: None, sector: 1, punches })
    }

    /// Returns the path of the target.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size in bytes; `None` for a regular file, which grows.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns the sector size in bytes, the unit of writes; 1 for a regular file.
    pub fn sector(&self) -> usize {
        self.sector
    }

    /// Writes whole sectors at `offset`. The memory of `data` must be aligned to [`MEMORY_ALIGN`].
    pub fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    /// Fills `out` from `offset`. On a device, `out` must be whole sectors, aligned as for
    /// [`Disk::write`]. Bytes beyond the end of a regular file are zeros.
    pub fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let mut filled = 0;
        while filled < out.len() {
            match self.file.read_at(&mut out[filled..], offset + filled as u64) {
                Ok(0) if self.size.is_none() => {
                    out[filled..].fill(0);
                    break;
                }
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Zeros a range without writing zeros. Returns false if the device cannot. A plain discard is
    /// not enough, because its result is undefined. Punching a hole in a block device is the
    /// kernel's zero-out without its slow fallback (`blkdev_fallocate`).
    pub fn punch(&self, offset: u64, length: u64) -> io::Result<bool> {
        if !self.punches.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, length) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.punches.store(false, Ordering::Relaxed);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Discards a range (TRIM). The content afterwards depends on the device.
    pub fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        sys::discard(&self.file, offset, length)
    }

    /// Flushes written data to the medium (fdatasync).
    pub fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Flushes to the medium, sets a file's length to `length`, and makes the kernel reread the
    /// partition table of a device.
    pub fn finish(self, length: u64) -> Result<(), Error> {
        let what = |doing: &str| Error::io(format!("{doing} {}", self.path.display()));
        if self.size.is_none() {
            self.file.set_len(length).map_err(what("set the length of"))?;
        }
        self.file.sync_all().map_err(what("flush"))?;
        if self.size.is_some() && !self.is_partition() {
            reread(&self.file).map_err(what("make the kernel read the partition table of"))?;
        }
        Ok(())
    }

    /// Returns true if the target is a partition, which has no partition table of its own.
    fn is_partition(&self) -> bool {
        let name = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        name.file_name()
            .is_some_and(|name| Path::new("/sys/class/block").join(name).join("partition").exists())
    }
}

fn reread(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + RELEASE;
    loop {
        match sys::reread_partitions(file) {
            // EINVAL: the device was created without space for partitions.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {}
            result => return result,
        }
        std::thread::sleep(LOOK);
    }
}

fn open_exclusively(path: &Path) -> Result<File, Error> {
    let deadline = Instant::now() + RELEASE;
    // O_EXCL on a block device claims it. The kernel refuses while the device or a partition of it
    // is mounted.
    let flags = OFlags::EXCL | OFlags::DIRECT;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    loop {
        match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
            Ok(file) => return Ok(file),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                if Instant::now() >= deadline {
                    return Err(Error::DiskBusy { path: path.to_owned() });
                }
            }
            Err(source) => {
                return Err(Error::Io { doing: format!("open {}", path.display()), source });
            }
        }
        std::thread::sleep(LOOK);
    }
}

fn is_block_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Memory aligned to [`MEMORY_ALIGN`], for direct I/O. The default is empty.
#[derive(Debug, Default)]
pub struct Aligned {
    storage: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    /// Allocates `length` zero bytes.
    pub fn new(length: usize) -> Self {
        let storage = vec![0; length + MEMORY_ALIGN];
        let start = storage.as_ptr().align_offset(MEMORY_ALIGN).min(MEMORY_ALIGN);
        Self { storage, start, length }
    }

    /// Returns all bytes, aligned.
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.length]
    }

    /// Returns all bytes, aligned and writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.length]
    }
}
