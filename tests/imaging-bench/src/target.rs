//! The target disk of all contestants: a loop device with direct I/O over a fully allocated file,
//! so that only the write path is measured.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use peers::find;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

/// Bytes of one read or write.
const PIECE: usize = 4 << 20;
/// Byte value of an overwritten disk: a contestant that omits a required write leaves this value.
const STALE: u8 = 0xa5;
/// Alignment of memory for direct I/O, in bytes.
const ALIGN: usize = 4096;

/// The loop device; dropping it removes the device and its file.
pub struct Target {
    file: PathBuf,
    device: PathBuf,
    bytes: u64,
}

impl Target {
    /// Creates a device of `bytes` in `folder`.
    ///
    /// # Errors
    /// There is no space or no loop device, or this process is not root.
    pub fn new(folder: &Path, bytes: u64) -> Result<Self> {
        let file = folder.join("disk");
        let backing = File::create(&file).context("cannot create the file of the disk")?;
        allocate(&backing, bytes)?;
        let mut losetup = Command::new(find("losetup", "mount")?);
        losetup.args(["--find", "--show", "--direct-io=on"]).arg(&file);
        let output = losetup.output().context("cannot run losetup")?;
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        ensure!(output.status.success(), "losetup gives no device: {err}");
        Ok(Self { file, device: out.into(), bytes })
    }

    /// Path of the loop device.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Size of the disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Overwrites the whole disk with old data, so that all its blocks are allocated.
    ///
    /// # Errors
    /// The disk cannot be written.
    pub fn spoil(&self) -> Result<()> {
        let backing = File::options().write(true).open(&self.file)?;
        allocate(&backing, self.bytes)?;
        let mut device = self.open(true)?;
        let mut buffer = Aligned::new();
        buffer.bytes_mut().fill(STALE);
        let mut left = self.bytes;
        while left > 0 {
            let count = left.min(PIECE as u64);
            let piece = &buffer.bytes_mut()[..usize::try_from(count)?];
            device.write_all(piece).context("cannot spoil the disk")?;
            left -= count;
        }
        device.sync_all().context("cannot flush the disk")
    }

    /// Compares the disk, read with direct I/O, with the expected image.
    ///
    /// # Errors
    /// The contents differ; with the first different piece.
    pub fn compare(&self, image: &Path) -> Result<()> {
        let mut expected = File::open(image)?;
        let mut device = self.open(false)?;
        let (mut wanted, mut found) = (vec![0; PIECE], Aligned::new());
        let mut offset = 0;
        let length = expected.metadata()?.len();
        while offset < length {
            let count = usize::try_from((length - offset).min(PIECE as u64))?;
            expected.read_exact(&mut wanted[..count])?;
            let found = &mut found.bytes_mut()[..count];
            device.read_exact(found).context("cannot read the disk")?;
            ensure!(*found == wanted[..count], "the disk differs from the image at {offset} or on");
            offset += count as u64;
        }
        Ok(())
    }

    /// True when a machine would find no boot code: the place of the partition table is zero.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn is_blank_at_the_beginning(&self) -> Result<bool> {
        let mut buffer = Aligned::new();
        self.open(false)?.read_exact(buffer.bytes_mut()).context("cannot read the disk")?;
        Ok(buffer.bytes_mut().iter().all(|byte| *byte == 0))
    }

    fn open(&self, write: bool) -> Result<File> {
        let direct = i32::try_from(OFlags::DIRECT.bits()).context("O_DIRECT is a small number")?;
        let mut options = OpenOptions::new();
        options.read(!write).write(write).custom_flags(direct);
        let device = self.device.display();
        options.open(&self.device).with_context(|| format!("cannot open {device}"))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
        let _ = fs::remove_file(&self.file);
    }
}

fn allocate(file: &File, bytes: u64) -> Result<()> {
    fallocate(file, FallocateFlags::empty(), 0, bytes).context("no space for the disk's file")
}

/// Text of a program's output, trimmed.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// A buffer with the alignment of direct I/O.
struct Aligned {
    storage: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new() -> Self {
        let storage = vec![0; PIECE + ALIGN];
        let start = storage.as_ptr().align_offset(ALIGN).min(ALIGN);
        Self { storage, start }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + PIECE]
    }
}
