//! Built-in actions. The last part of an image's repository name selects the action, regardless of
//! registry and tag: `quay.io/tinkerbell/actions/image2disk:latest` is `image2disk`. Any other
//! image runs as a container ([`crate::container`]).

mod archive2disk;
mod cexec;
mod disk_wipe;
mod environment;
mod growpart;
mod grub;
mod grub2disk;
mod image2disk;
mod kexec;
mod oci2disk;
mod rootio;
mod slurp;
mod syslinux;
#[cfg(test)]
mod tests;
mod writefile;

use std::path::Path;
use std::sync::Arc;

use agent_rpc::Assignment;
use imaging::Meter;
use imaging::storage::{self, Grow};
use imaging::stream::{Accept, Image, Timeouts};

use crate::Error;
use crate::container::Container;
pub use crate::outcome::{Leave, Outcome};
use environment::Environment;
pub use image2disk::parse_sha256;

/// Names of all built-in actions, for the error message about an unknown action.
const KNOWN: &str = "image2disk, qemuimg2disk, oci2disk, archive2disk, writefile, cexec, \
    disk-wipe, storage, rootio, growpart, grub2disk, syslinux, slurp, kexec, reboot, and \
    waitdaemon for one of them";
/// Action that runs the action named by IMAGE. Upstream's waitdaemon first reports success; here
/// every action that leaves the OS waits until the box has acknowledged the report.
const WAITDAEMON: &str = "waitdaemon";
/// Name of Tinkerbell's first installer in old templates; runs as image2disk. The box adds the
/// settings from the machine's metadata.
const OSIE_INSTALLER: &str = "osie-installer";

/// Action with all settings, validated before the action changes anything.
#[derive(Debug, Clone)]
pub enum Action {
    /// Writes an image to a disk.
    Image2Disk(Image),
    /// Writes an image to a disk, and grows its last partition to the end of the disk.
    ImageGrown(Image, Grow),
    /// Grows the last partition of a disk.
    Grow(Grow),
    /// Writes a file to a partition.
    WriteFile(writefile::WriteFile),
    /// Unpacks an archive to a partition.
    Archive2Disk(archive2disk::Archive2Disk),
    /// Runs programs that are on a partition.
    Cexec(cexec::Cexec),
    /// Erases a whole disk.
    DiskWipe(disk_wipe::DiskWipe),
    /// Creates partitions, arrays, volumes and file systems.
    Rootio(rootio::Rootio),
    /// Installs GRUB as boot loader.
    Grub2Disk(grub2disk::Grub2Disk),
    /// Installs syslinux as boot loader.
    Syslinux(syslinux::Syslinux),
    /// Uploads the content of a disk.
    Slurp(slurp::Slurp),
    /// Loads a kernel from a partition and starts it by kexec.
    Kexec(kexec::Kexec),
    /// Runs a container image.
    Container(Container),
    /// Restarts the machine through the firmware.
    Reboot,
}

/// Settings of the agent that apply to all actions.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Kinds of targets that DEST_DISK may name: block devices, or also regular files.
    pub accept: Accept,
    /// Default timeouts of downloads; an action's own settings take precedence.
    pub timeouts: Timeouts,
    /// `host:port` of the registry for images that are not built in. `None` refuses such images.
    pub registry: Option<Arc<str>>,
}

impl Limits {
    /// Settings for a real machine, without a registry.
    pub const MACHINE: Self =
        Self { accept: Accept::BlockDevices, timeouts: Timeouts::DEFAULT, registry: None };
}

impl Action {
    /// Selects the action for an assignment and validates its settings.
    ///
    /// # Errors
    /// [`Error::UnknownAction`], [`Error::MissingSetting`], [`Error::BadSetting`],
    /// [`imaging::Error::Url`].
    pub fn parse(assignment: &Assignment, limits: Limits) -> Result<Self, Error> {
        let read = |action| Environment::new(action, &assignment.environment);
        let image = match repository(&assignment.image) {
            WAITDAEMON => read(WAITDAEMON).required("IMAGE")?,
            _ => assignment.image.as_str(),
        };
        match repository(image) {
            "image2disk" | OSIE_INSTALLER => {
                let environment = read("image2disk");
                growpart::after(&environment, image2disk::parse(&environment, limits)?)
            }
            "qemuimg2disk" => {
                let environment = read("qemuimg2disk");
                growpart::after(&environment, image2disk::parse(&environment, limits)?)
            }
            "oci2disk" => {
                let environment = read("oci2disk");
                growpart::after(&environment, oci2disk::parse(&environment, limits)?)
            }
            "growpart" => growpart::parse(&read("growpart")),
            "writefile" => writefile::WriteFile::parse(&read("writefile")).map(Self::WriteFile),
            "archive2disk" => archive2disk::Archive2Disk::parse(&read("archive2disk"), limits)
                .map(Self::Archive2Disk),
            "cexec" => cexec::Cexec::parse(&read("cexec")).map(Self::Cexec),
            "disk-wipe" => disk_wipe::DiskWipe::parse(&read("disk-wipe")).map(Self::DiskWipe),
            "storage" => rootio::Rootio::storage(&read("storage")).map(Self::Rootio),
            "rootio" => {
                let (environment, command) = (read("rootio"), &assignment.command);
                rootio::Rootio::parse(&environment, command, limits.timeouts).map(Self::Rootio)
            }
            "grub2disk" => grub2disk::Grub2Disk::parse(&read("grub2disk")).map(Self::Grub2Disk),
            "syslinux" => syslinux::Syslinux::parse(&read("syslinux")).map(Self::Syslinux),
            "slurp" => slurp::Slurp::parse(&read("slurp"), limits.timeouts).map(Self::Slurp),
            "kexec" => kexec::Kexec::parse(&read("kexec")).map(Self::Kexec),
            "reboot" => Ok(Self::Reboot),
            _ if image == assignment.image && limits.registry.is_some() => {
                let registry = limits.registry.unwrap_or_default();
                let pairs = read("container").pairs();
                Container::parse(assignment, pairs, registry, limits.timeouts).map(Self::Container)
            }
            _ => Err(Error::UnknownAction { image: image.to_owned(), known: KNOWN.to_owned() }),
        }
    }

    /// Runs the action to its end. Dropping the future stops the work at its next step.
    pub async fn run(self, meter: &Arc<Meter>) -> Result<Outcome, Error> {
        let summary = match self {
            Self::Image2Disk(image) => image2disk::run(&image, meter).await?,
            Self::ImageGrown(image, grow) => {
                let written = image2disk::run(&image, meter).await?;
                format!("{written}; {}", grow.run(meter).await?)
            }
            Self::Grow(grow) => grow.run(meter).await?,
            Self::WriteFile(file) => file.run(meter).await?,
            Self::Archive2Disk(archive) => archive.run(meter).await?,
            Self::Cexec(cexec) => cexec.run(meter).await?,
            Self::DiskWipe(wipe) => wipe.run(meter).await?,
            Self::Rootio(rootio) => rootio.run(meter).await?,
            Self::Grub2Disk(grub) => grub.run(meter).await?,
            Self::Syslinux(syslinux) => syslinux.run(meter).await?,
            Self::Slurp(slurp) => slurp.run(meter).await?,
            Self::Kexec(kexec) => {
                kexec.load(meter).await?;
                return Ok(Outcome::Leave(Leave::Kexec));
            }
            Self::Container(container) => return container.run(meter).await,
            Self::Reboot => return Ok(Outcome::Leave(Leave::Reboot)),
        };
        Ok(Outcome::Done(summary))
    }
}

/// Assembles the array or activates the volume that the action's disk settings name. The agent's OS
/// does not do so automatically.
///
/// # Errors
/// The array or volume cannot be activated.
pub async fn prepare(assignment: &Assignment, meter: &Meter) -> Result<(), imaging::Error> {
    let environment = Environment::new("", &assignment.environment);
    let names = ["DEST_DISK", "BLOCK_DEVICE", "GRUB_DISK", "SOURCE_DISK"];
    let named = names.iter().find_map(|name| environment.optional(name));
    match named {
        Some(device) => storage::ready(Path::new(device), meter).await,
        None => Ok(()),
    }
}

/// Returns the last path component of an OCI reference, without tag and digest.
fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default()
}
