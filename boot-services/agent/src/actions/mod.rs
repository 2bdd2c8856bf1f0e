//! What is built in. An action is told by its image's repository name, whatever the registry and
//! tag: `quay.io/tinkerbell/actions/image2disk:latest` is `image2disk`.

mod archive2disk;
mod cexec;
mod disk_wipe;
mod environment;
mod grub;
mod image2disk;
mod kexec;
mod oci2disk;
#[cfg(test)]
mod tests;
mod writefile;

use std::sync::Arc;

use workflow_rpc::Assignment;

use crate::stream::{Accept, Image, Patience};
use crate::{Error, Meter};
use environment::Environment;
pub use image2disk::parse_sha256;

/// The names of all built-in actions, as an operator reads them in a refusal.
const KNOWN: &str = "image2disk, qemuimg2disk, oci2disk, archive2disk, writefile, cexec, \
    disk-wipe, kexec, reboot, and waitdaemon for one of them";
/// Runs another action once its own success is reported: there it is an image of containers, here
/// every action that leaves waits for that.
const WAITDAEMON: &str = "waitdaemon";

/// An action with everything it needs, checked before anything is touched.
#[derive(Debug, Clone)]
pub enum Action {
    /// Write an image to a disk.
    Image2Disk(Image),
    /// Write a file to a partition.
    WriteFile(writefile::WriteFile),
    /// Unpack an archive to a partition.
    Archive2Disk(archive2disk::Archive2Disk),
    /// Run programs of a partition.
    Cexec(cexec::Cexec),
    /// Erase a disk.
    DiskWipe(disk_wipe::DiskWipe),
    /// Start a kernel from a partition.
    Kexec(kexec::Kexec),
    /// Restart the machine.
    Reboot,
}

/// How an action ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done; what to tell the operator.
    Done(String),
    /// Done but for leaving, which waits until the box has acknowledged the report.
    Leave(Leave),
}

/// A way out of the agent's OS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Restart through the firmware.
    Reboot,
    /// Jump into the loaded kernel.
    Kexec,
}

/// What the surroundings allow.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// What DEST_DISK may be.
    pub accept: Accept,
    /// How long image2disk waits for its server.
    pub patience: Patience,
}

impl Limits {
    /// In a real machine.
    pub const MACHINE: Self = Self { accept: Accept::BlockDevices, patience: Patience::DEFAULT };
}

impl Action {
    /// Understand an assignment.
    ///
    /// # Errors
    /// [`Error::UnknownAction`], [`Error::MissingSetting`], [`Error::BadSetting`], [`Error::Url`].
    pub fn parse(assignment: &Assignment, limits: Limits) -> Result<Self, Error> {
        let read = |action| Environment::new(action, &assignment.environment);
        let image = match repository(&assignment.image) {
            WAITDAEMON => read(WAITDAEMON).required("IMAGE")?,
            _ => assignment.image.as_str(),
        };
        match repository(image) {
            "image2disk" => image2disk::parse(&read("image2disk"), limits).map(Self::Image2Disk),
            "qemuimg2disk" => {
                image2disk::parse(&read("qemuimg2disk"), limits).map(Self::Image2Disk)
            }
            "oci2disk" => oci2disk::parse(&read("oci2disk"), limits).map(Self::Image2Disk),
            "writefile" => writefile::WriteFile::parse(&read("writefile")).map(Self::WriteFile),
            "archive2disk" => archive2disk::Archive2Disk::parse(&read("archive2disk"), limits)
                .map(Self::Archive2Disk),
            "cexec" => cexec::Cexec::parse(&read("cexec")).map(Self::Cexec),
            "disk-wipe" => disk_wipe::DiskWipe::parse(&read("disk-wipe")).map(Self::DiskWipe),
            "kexec" => kexec::Kexec::parse(&read("kexec")).map(Self::Kexec),
            "reboot" => Ok(Self::Reboot),
            _ => Err(Error::UnknownAction { image: image.to_owned(), known: KNOWN.to_owned() }),
        }
    }

    /// Do it. Dropping the future stops the work at its next step.
    pub async fn run(self, meter: &Arc<Meter>) -> Result<Outcome, Error> {
        match self {
            Self::Image2Disk(image) => image2disk::run(&image, meter).await.map(Outcome::Done),
            Self::WriteFile(file) => file.run(meter).await.map(Outcome::Done),
            Self::Archive2Disk(archive) => archive.run(meter).await.map(Outcome::Done),
            Self::Cexec(cexec) => cexec.run(meter).await.map(Outcome::Done),
            Self::DiskWipe(wipe) => wipe.run(meter).await.map(Outcome::Done),
            Self::Kexec(kexec) => kexec.load(meter).await.map(|()| Outcome::Leave(Leave::Kexec)),
            Self::Reboot => Ok(Outcome::Leave(Leave::Reboot)),
        }
    }
}

/// The last path component of an OCI reference, without tag and digest.
fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default()
}
