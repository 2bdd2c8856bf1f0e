//! The box's disk as the kernel presents it: a loop device with the partitions of the image.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use image::disk::Part;
use qemu::poll;
use rustix::fs::{CWD, FileType, Mode, SeekFrom, makedev, mknodat, seek};
use rustix::io::Errno;
use stdx::testing::PATIENCE;

use crate::run;

/// Maximum number of copies of a disk in use, until a copy equals the disk.
const COPIES_MAX: usize = 50;
/// Bytes that are compared at once.
const PIECE: usize = 1 << 20;

/// A disk image as a block device.
#[derive(Debug)]
pub struct Attached {
    /// Kernel name, such as `loop0`.
    name: String,
}

impl Attached {
    /// Attaches the image at `disk`.
    ///
    /// # Errors
    /// No loop device is left, or the disk has no partitions.
    pub fn new(disk: &Path) -> io::Result<Self> {
        // With this option the kernel removes the partitions when the disk is detached.
        let mut attach = Command::new("losetup");
        let device = run(attach.args(["--partscan", "--show", "--find"]).arg(disk))?;
        let device = device.trim();
        let name = device.strip_prefix("/dev/").unwrap_or(device).to_owned();
        let attached = Self { name };
        // A kernel without CONFIG_EFI_PARTITION does not read the table.
        let added = run(Command::new("partx").args(["--update", device]));
        if let Err(error) = added.and_then(|_| attached.number(Some(Part::Cache))) {
            attached.release();
            return Err(error);
        }
        Ok(attached)
    }

    /// Detaches the disk once nothing uses it.
    pub fn release(&self) {
        // A disk that is detached already is not an error.
        let _ = run(Command::new("losetup").args(["--detach", &format!("/dev/{}", self.name)]));
    }

    /// Waits until the disk is detached, so that all data is written to the image.
    ///
    /// # Errors
    /// Some process uses the disk.
    pub fn wait_released(&self) -> io::Result<()> {
        let backing = format!("/sys/block/{}/loop/backing_file", self.name);
        let gone = || (!Path::new(&backing).exists()).then_some(());
        poll(&format!("{} to be released", self.name), PATIENCE, gone).map_err(io::Error::other)
    }

    /// Creates the device nodes of the disk and its partitions in `folder`.
    ///
    /// # Errors
    /// The folder's file system does not support device nodes.
    pub fn make_nodes(&self, folder: &Path) -> io::Result<()> {
        for part in [None].into_iter().chain(Part::ALL.map(Some)) {
            let (major, minor) = self.number(part)?;
            let node = folder.join(self.device(part));
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, &node, FileType::BlockDevice, mode, makedev(major, minor))?;
        }
        Ok(())
    }

    /// The kernel's name of a partition, or of the disk.
    pub fn device(&self, part: Option<Part>) -> String {
        match part {
            None => self.name.clone(),
            Some(part) => format!("{}p{}", self.name, number(part)),
        }
    }

    /// The folder of a partition in sysfs, below `sys`.
    pub fn sysfs(&self, sys: &Path, part: Part) -> PathBuf {
        let devices = sys.join("devices/virtual/block");
        devices.join(&self.name).join(self.device(Some(part)))
    }

    fn number(&self, part: Option<Part>) -> io::Result<(u32, u32)> {
        let file = format!("/sys/class/block/{}/dev", self.device(part));
        let text = fs::read_to_string(file)?;
        let number = text.trim().split_once(':');
        let number =
            number.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        number.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// The number of a partition in the table.
pub fn number(part: Part) -> usize {
    1 + Part::ALL.iter().take_while(|other| **other != part).count()
}

/// Copies a disk in use to `copy`, as it is at one moment: data that the file systems have written
/// to the device, without data that they hold in memory.
///
/// # Errors
/// The disk changes all the time.
pub fn copy_at_one_moment(disk: &Path, copy: &Path) -> io::Result<()> {
    for _ in 0..COPIES_MAX {
        run(Command::new("cp").arg("--sparse=always").args([disk, copy]))?;
        // Each byte was equal when it was copied and when it is compared. So the disk was equal to
        // the whole copy at the moment between the two passes.
        if are_equal(disk, copy)? {
            return Ok(());
        }
    }
    Err(io::Error::other(format!("{} changes all the time", disk.display())))
}

/// True when two sparse files are equal. Holes in both are not read.
fn are_equal(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let mut buffers = [vec![0; PIECE], vec![0; PIECE]];
    for Range { mut start, end } in [data(&one)?, data(&other)?].concat() {
        while start < end {
            let count = usize::try_from(end - start).unwrap_or(PIECE).min(PIECE);
            let [left, right] = buffers.each_mut().map(|buffer| &mut buffer[..count]);
            one.read_exact_at(left, start)?;
            other.read_exact_at(right, start)?;
            if left != right {
                return Ok(false);
            }
            start += count as u64;
        }
    }
    Ok(true)
}

/// Ranges of a file that contain data, without its holes.
fn data(file: &File) -> io::Result<Vec<Range<u64>>> {
    let mut parts = Vec::new();
    let mut at = 0;
    loop {
        match seek(file, SeekFrom::Data(at)) {
            Ok(start) => {
                let end = seek(file, SeekFrom::Hole(start))?;
                parts.push(start..end);
                at = end;
            }
            // No data after this offset.
            Err(Errno::NXIO) => return Ok(parts),
            Err(errno) => return Err(errno.into()),
        }
    }
}
