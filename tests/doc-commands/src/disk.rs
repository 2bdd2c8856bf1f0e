//! A disk to which a person flashes the box: a loop device over a sparse file.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use firmware::run;
use image::disk::disk_size;

/// A loop device of the size of the box's disk, detached when dropped.
#[derive(Debug)]
pub struct Disk(String);

impl Disk {
    /// Makes the file and attaches it.
    pub fn of(file: &Path) -> Self {
        File::create(file).unwrap().set_len(disk_size()).unwrap();
        let device = run(Command::new("losetup").args(["--find", "--show"]).arg(file)).unwrap();
        Self(device.trim().to_owned())
    }

    /// Path of the device.
    pub fn device(&self) -> &str {
        &self.0
    }

    /// Text that confirms the disk in the prompt of `box flash`: the end of the device's name,
    /// because a loop device has no serial number.
    pub fn proof(&self) -> &str {
        &self.0[self.0.len() - 4..]
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run(Command::new("losetup").args(["--detach", &self.0]));
    }
}
