//! Creates partitions, arrays, volume groups and filesystems from a storage description.
//!
//! [`description`] parses the requested state, [`plan`] selects the programs that create it, and
//! this file runs the programs. It first stops arrays and mappings that use the disks, so that a
//! second run after a failure or a power failure has the same result.

mod amount;
mod assemble;
mod description;
mod grow;
mod plan;
mod release;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

pub use amount::Amount;
pub use description::{SWAP, Storage, TEXT_BYTES};
pub use grow::Grow;
pub use plan::{DiskState, Slice, Step, Table};

use assemble::{Assembler, CompositeDevice};

use crate::disks::disk::{Accept, Disk, wait_for};
use crate::disks::{preserve, select};
use crate::mount::{Mounted, Purpose};
use crate::programs::tools::Tools;
use crate::task::blocking;
use crate::{Error, Meter};

/// Folder with all block devices in sysfs.
const CLASS: &str = "/sys/class/block";

/// Writes partition tables, and creates arrays and volume groups. Returns a summary for the
/// operator.
///
/// # Errors
/// The description does not fit the disks, or a program fails. Most errors occur before any change.
pub async fn partition(storage: Storage, table: Table, meter: &Meter) -> Result<String, Error> {
    let (storage, tools) = taken(storage, meter).await?;
    let disks = storage.disks.clone();
    let seen = blocking("looking at the disks", move || {
        disks.iter().map(|disk| see(&disk.device)).collect::<Result<Vec<_>, _>>()
    });
    let steps = plan::partition(&storage, &seen.await?, table).map_err(wrong)?;
    carry_out(&steps, &tools, meter).await?;
    Ok(format!("made {}", plan::made(&storage)))
}

/// Creates the filesystems and swap areas. Returns a summary for the operator.
///
/// # Errors
/// A device is missing or preserved, or a program fails.
pub async fn format(storage: Storage, meter: &Meter) -> Result<String, Error> {
    let storage = blocking("finding the disks", move || resolved(storage)).await?;
    let tools = Tools::get(meter).await?;
    bring_up(&tools, storage.filesystems.iter().map(|it| &*it.mount.device), meter).await?;
    carry_out(&plan::format(&storage), &tools, meter).await?;
    let made = storage.filesystems.iter();
    let made: Vec<_> =
        made.map(|it| format!("{} on {}", it.mount.format, it.mount.device)).collect();
    Ok(format!("made {}", if made.is_empty() { "no file system".into() } else { made.join(", ") }))
}

/// Removes partition tables and signatures from the disks. Returns a summary for the operator.
///
/// # Errors
/// A device is missing or preserved, or a program fails.
pub async fn wipe(storage: Storage, meter: &Meter) -> Result<String, Error> {
    let (storage, tools) = taken(storage, meter).await?;
    for disk in &storage.disks {
        let device = disk.device.clone();
        let seen = blocking("looking at the disks", move || see(&device)).await?;
        carry_out(&plan::wipe(&seen), &tools, meter).await?;
    }
    let names: Vec<_> = storage.disks.iter().map(|disk| disk.device.as_str()).collect();
    Ok(format!("wiped the tables and signatures of {}", names.join(", ")))
}

/// Mounts and unmounts each filesystem, as a check. Each action mounts its filesystem itself.
///
/// # Errors
/// A device is missing or preserved, or a program fails.
pub async fn mount(storage: Storage, meter: &Meter) -> Result<String, Error> {
    meter.say("mounting each file system");
    let storage = blocking("finding the disks", move || resolved(storage)).await?;
    for filesystem in &storage.filesystems {
        ready(Path::new(&filesystem.mount.device), meter).await?;
    }
    blocking("mounting", move || {
        let mounts = storage.filesystems.iter().map(|it| &it.mount);
        let mounts: Vec<_> = mounts.filter(|mount| mount.format != SWAP).collect();
        for mount in &mounts {
            Mounted::mount(Path::new(&mount.device), &mount.format, Purpose::Read)?.unmount()?;
        }
        let count = mounts.len();
        Ok(format!("{count} file systems can be mounted; each action mounts those that it names"))
    })
    .await
}

fn wrong(reason: String) -> Error {
    Error::Storage { reason }
}

/// Resolves the device selectors, and stops arrays and mappings that use the devices.
async fn taken(storage: Storage, meter: &Meter) -> Result<(Storage, Tools), Error> {
    let found = blocking("finding the disks", move || {
        let storage = resolved(storage)?;
        let bases = bases(&storage)?;
        bases.iter().try_for_each(|base| preserve::check(base))?;
        Ok((storage, bases))
    });
    let (storage, bases) = found.await?;
    let names = bases.iter().filter_map(|base| Some(base.file_name()?.to_str()?.to_owned()));
    let holders = release::holders(Path::new(CLASS), &names.collect::<Vec<_>>());
    for holder in &holders {
        // The holder may lie on another disk too.
        preserve::check(&Path::new("/dev").join(holder))?;
    }
    let tools = Tools::get(meter).await?;
    for holder in &holders {
        meter.say(format!("stopping {holder}"));
        tools.run(&release::stop(holder), meter).await?;
    }
    let groups: Vec<_> = storage.volume_groups.iter().map(|group| group.name.clone()).collect();
    blocking("opening the disks", move || {
        groups.iter().for_each(|group| release::forget(&Path::new("/dev").join(group)));
        // Opened like the target of an image: this fails while a device is in use.
        bases.iter().try_for_each(|base| Disk::open(base, Accept::BlockDevices).map(drop))
    })
    .await?;
    Ok((storage, tools))
}

/// Replaces each device selector by the device's path.
fn resolved(mut storage: Storage) -> Result<Storage, Error> {
    let path = |named: &mut String| -> Result<(), Error> {
        *named = select::resolve(Path::new(named))?.to_string_lossy().into_owned();
        Ok(())
    };
    for disk in &mut storage.disks {
        path(&mut disk.device)?;
        wait_for(Path::new(&disk.device))?;
        disk.device = real(&disk.device).to_string_lossy().into_owned();
    }
    for array in &mut storage.raid {
        array.devices.iter_mut().chain(&mut array.spare).try_for_each(path)?;
    }
    for group in &mut storage.volume_groups {
        group.physical_volumes.iter_mut().try_for_each(path)?;
    }
    storage.filesystems.iter_mut().try_for_each(|it| path(&mut it.mount.device))?;
    let mut disks = BTreeSet::new();
    match storage.disks.iter().find(|disk| !disks.insert(&disk.device)) {
        Some(disk) => Err(wrong(format!("{} is listed twice", disk.device))),
        None => Ok(storage),
    }
}

/// Returns the existing devices of the description: disks, array members and physical volumes.
fn bases(storage: &Storage) -> Result<BTreeSet<PathBuf>, Error> {
    let arrays: BTreeSet<_> = storage.raid.iter().map(|array| array.path()).collect();
    let members = storage.raid.iter().flat_map(|array| array.devices.iter().chain(&array.spare));
    let volumes = storage.volume_groups.iter().flat_map(|group| &group.physical_volumes);
    let others = members.chain(volumes).filter(|path| !arrays.contains(*path));
    let there = others.filter(|path| Path::new(path).exists());
    let disks = storage.disks.iter().map(|disk| &disk.device);
    let bases: BTreeSet<_> = disks.chain(there).map(|path| real(path)).collect();
    if bases.is_empty() {
        return Err(wrong("none of the described disks is in this machine".to_owned()));
    }
    Ok(bases)
}

fn real(path: &str) -> PathBuf {
    Path::new(path).canonicalize().unwrap_or_else(|_| path.into())
}

/// Reads size and partitions of the disk at `path` from sysfs.
pub fn see(path: &str) -> Result<DiskState, Error> {
    let class = Path::new(CLASS);
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = |file: PathBuf| -> Result<u64, Error> {
        let text = std::fs::read_to_string(&file)
            .map_err(Error::io(format!("read {}", file.display())))?;
        let bad = || Error::Io {
            doing: format!("parse {}", file.display()),
            source: std::io::ErrorKind::InvalidData.into(),
        };
        text.trim().parse().map_err(|_| bad())
    };
    let folder = class.join(&name);
    let partitions = release::partitions(class, &name).into_iter().map(|part| {
        let folder = folder.join(part);
        let slice = number(folder.join("partition"))?;
        Ok(Slice {
            number: u32::try_from(slice).unwrap_or_default(),
            start: number(folder.join("start"))?,
            size: number(folder.join("size"))?,
        })
    });
    Ok(DiskState {
        path: path.to_owned(),
        size: number(folder.join("size"))?,
        block: number(folder.join("queue/logical_block_size"))?,
        partitions: partitions.collect::<Result<_, Error>>()?,
    })
}

async fn carry_out(steps: &[Step], tools: &Tools, meter: &Meter) -> Result<(), Error> {
    for step in steps {
        match step {
            Step::Appear(path) => {
                let path = PathBuf::from(path);
                blocking("waiting for a device", move || wait_for(&path)).await?;
            }
            Step::Run(run, touches) => {
                touches.iter().try_for_each(|path| preserve::check(Path::new(path)))?;
                meter.say(format!("{} {}", run.program, touches.join(" ")));
                tools.run(run, meter).await?;
            }
        }
    }
    // The output of the programs must be on the disks before the next step.
    blocking("flushing the disks", || {
        rustix::fs::sync();
        Ok(())
    })
    .await
}

/// Activates the inactive arrays and volumes among `devices`. The agent's OS does not activate them
/// automatically.
async fn bring_up(
    tools: &Tools,
    devices: impl Iterator<Item = &str>,
    meter: &Meter,
) -> Result<(), Error> {
    for device in devices {
        if is_composed_and_missing(device) {
            Assembler { tools, meter }.bring_up(device).await?;
        }
    }
    Ok(())
}

/// Activates `device` if it is an inactive array or volume; no effect for other devices.
///
/// # Errors
/// The tools image is not available, or members are missing.
pub async fn ready(device: &Path, meter: &Meter) -> Result<(), Error> {
    match device.to_str() {
        Some(path) if is_composed_and_missing(path) => {
            let tools = Tools::get(meter).await?;
            bring_up(&tools, std::iter::once(path), meter).await
        }
        _ => Ok(()),
    }
}

fn is_composed_and_missing(path: &str) -> bool {
    CompositeDevice::of(path).is_some() && File::open(path).is_err()
}
