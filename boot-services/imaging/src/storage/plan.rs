//! Selects the programs that create the described state. Pure: does not access disks.

use super::description::{Array, Disk, Filesystem, Partition, SWAP, Storage, VolumeGroup};
use crate::programs::tools::Run;

/// Unit of partition sizes and offsets, in bytes.
pub const SECTOR: u64 = 512;
/// Alignment of partitions: one mebibyte, in sectors.
const ALIGN: u64 = 2048;
/// Sectors reserved for the backup GPT at the end, also enough for disks with 4096-byte sectors.
const GPT_END: u64 = 40;

/// Step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Runs a program, which writes to the listed devices.
    Run(Run, Vec<String>),
    /// Waits until the device path exists, after the step that creates it.
    Appear(String),
}

/// Partition: number, start and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Partition number, from 1.
    pub number: u32,
    /// First sector, in units of 512 bytes.
    pub start: u64,
    /// Size in sectors of 512 bytes.
    pub size: u64,
}

/// Size and partitions of a disk, from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskState {
    /// Device path, such as `/dev/sda`.
    pub path: String,
    /// Size in sectors of 512 bytes.
    pub size: u64,
    /// Logical block size in bytes.
    pub block: u64,
    /// Partitions on the disk.
    pub partitions: Vec<Slice>,
}

/// Type of a partition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// GUID Partition Table (UEFI).
    Gpt,
    /// Master Boot Record (DOS).
    Mbr,
}

/// Builds a step that runs a program on `device`, the last argument, and writes to it.
fn run(program: &'static str, words: &[&str], device: &str) -> Step {
    Step::Run(Run::on(program, words, device), vec![device.to_owned()])
}

/// Returns a partition's path, such as `/dev/sda1` or `/dev/nvme0n1p1`.
pub fn partition_path(disk: &str, number: u32) -> String {
    let digit = disk.ends_with(|last: char| last.is_ascii_digit());
    format!("{disk}{}{number}", if digit { "p" } else { "" })
}

/// Plans the removal of all signatures, of the partitions and then of the disk itself.
pub fn wipe(seen: &DiskState) -> Vec<Step> {
    let parts = seen.partitions.iter().map(|slice| partition_path(&seen.path, slice.number));
    let all = parts.chain(std::iter::once(seen.path.clone()));
    all.map(|device| run("wipefs", &["--all", "--force", "--quiet"], &device)).collect()
}

/// Plans partition tables, arrays and volume groups. Devices in `storage` must be paths; `seen` has
/// the state of `storage.disks`, in the same order.
///
/// The error is a sentence for the operator.
pub fn partition(storage: &Storage, seen: &[DiskState], table: Table) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (disk, seen) in storage.disks.iter().zip(seen) {
        steps.extend(tables(disk, seen, table)?);
    }
    steps.extend(storage.raid.iter().flat_map(array));
    steps.extend(storage.volume_groups.iter().flat_map(volumes));
    Ok(steps)
}

fn tables(disk: &Disk, seen: &DiskState, table: Table) -> Result<Vec<Step>, String> {
    let slices = layout(disk, seen, table)?;
    let mut steps = Vec::new();
    if disk.wipe_table {
        steps.extend(wipe(seen));
    } else if !seen.partitions.is_empty() && !slices.is_empty() {
        let (mut wanted, mut there) = (slices.clone(), seen.partitions.clone());
        wanted.sort_by_key(|slice| slice.number);
        there.sort_by_key(|slice| slice.number);
        if wanted == there {
            return Ok(Vec::new());
        }
        return Err(format!(
            "{} has another partition table, of {} partitions; wipe_table: true replaces it",
            seen.path,
            seen.partitions.len()
        ));
    }
    if slices.is_empty() {
        return Ok(steps);
    }
    let words = ["--wipe=always", "--wipe-partitions=always", "--quiet", &seen.path];
    let mut made = Run::new("sfdisk", words.map(str::to_owned));
    made.input = Some(script(disk, seen, &slices, table));
    steps.push(Step::Run(made, vec![seen.path.clone()]));
    // partx registers the partitions with a kernel that does not support this kind of table. On
    // other kernels it has no effect.
    let reread = Run::on("partx", &["--update"], &seen.path);
    steps.push(Step::Run(reread, vec![seen.path.clone()]));
    let paths = slices.iter().map(|slice| partition_path(&seen.path, slice.number));
    steps.extend(paths.map(Step::Appear));
    Ok(steps)
}

/// Returns the end of the space for partitions: the last usable sector plus 1.
fn end(seen: &DiskState, table: Table) -> u64 {
    match table {
        Table::Gpt => seen.size.saturating_sub(GPT_END),
        Table::Mbr => seen.size.min(u32::MAX.into()),
    }
}

/// Returns the end of a grown partition in sectors: the last usable whole mebibyte.
pub fn grown_end(seen: &DiskState, gpt: bool) -> u64 {
    end(seen, if gpt { Table::Gpt } else { Table::Mbr }) / ALIGN * ALIGN
}

/// Computes start and size of the partitions. Returns an error if they overlap or do not fit.
fn layout(disk: &Disk, seen: &DiskState, table: Table) -> Result<Vec<Slice>, String> {
    let end = end(seen, table);
    if table == Table::Mbr && disk.partitions.len() > 4 {
        return Err(format!("{}: an MBR can have at most 4 partitions", seen.path));
    }
    // Whole blocks of the disk, which may be larger than a sector.
    let block = (seen.block / SECTOR).max(1);
    let mut next = ALIGN;
    let mut slices = Vec::new();
    for (at, partition) in disk.partitions.iter().enumerate() {
        let number = partition.number_at(at);
        let start = match partition.start.bytes(SECTOR) / SECTOR {
            0 => next,
            start if start < next || start % block != 0 => {
                let path = &seen.path;
                return Err(format!(
                    "partition {number} of {path} cannot begin at sector {start}: the first \
                     free one is {next}"
                ));
            }
            start => start,
        };
        let size = match partition.size.bytes(1) {
            0 => (end / ALIGN * ALIGN).saturating_sub(start),
            _ => {
                let bytes = partition.size.bytes(SECTOR);
                bytes.div_ceil(SECTOR).div_ceil(block).saturating_mul(block)
            }
        };
        if size == 0 || start.saturating_add(size) > end {
            return Err(format!(
                "partition {number} does not fit on {}: it needs {} from {} on, of {}",
                seen.path,
                stdx::bytes(size.saturating_mul(SECTOR)),
                stdx::bytes(start.saturating_mul(SECTOR)),
                stdx::bytes(end.saturating_mul(SECTOR)),
            ));
        }
        slices.push(Slice { number, start, size });
        next = (start + size).next_multiple_of(ALIGN);
    }
    Ok(slices)
}

/// Builds the script for sfdisk's standard input.
fn script(disk: &Disk, seen: &DiskState, slices: &[Slice], table: Table) -> String {
    let block = (seen.block / SECTOR).max(1);
    let mut text = match table {
        Table::Gpt => "label: gpt\nunit: sectors\n".to_owned(),
        Table::Mbr => "label: dos\nunit: sectors\n".to_owned(),
    };
    for (partition, slice) in disk.partitions.iter().zip(slices) {
        let (start, size) = (slice.start / block, slice.size / block);
        let kind = kind(partition, table);
        text += &format!("{} : start={start}, size={size}, {kind}\n", slice.number);
    }
    text
}

fn kind(partition: &Partition, table: Table) -> String {
    let label = partition.label.as_str();
    if table == Table::Mbr {
        let kind = match label {
            "SWAP" => "82",
            "FAT32" | "FAT32_ACTIVE" => "c",
            _ => "83",
        };
        let bootable = if label.ends_with("_ACTIVE") { ", bootable" } else { "" };
        return format!("type={kind}{bootable}");
    }
    let kind = match (partition.type_guid.as_str(), label) {
        ("", "SWAP") => "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F",
        ("", "BIOS") => "21686148-6449-6E6F-744E-656564454649",
        ("", "EFI") => "C12A7328-F81F-11D2-BA4B-00C93EC93B3B",
        ("", _) => "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
        (stated, _) => stated,
    };
    match label {
        "" => format!("type={kind}"),
        label => format!("type={kind}, name=\"{label}\""),
    }
}

/// Plans the removal of old signatures, so that no earlier array or volume group is found on the
/// devices.
fn cleared(devices: &[String]) -> impl Iterator<Item = Step> + '_ {
    devices.iter().flat_map(|device| {
        let clear = run("wipefs", &["--all", "--force", "--quiet"], device);
        [Step::Appear(device.clone()), clear]
    })
}

fn array(array: &Array) -> Vec<Step> {
    let members: Vec<_> = array.devices.iter().chain(&array.spare).cloned().collect();
    let mut arguments = vec![
        "--create".to_owned(),
        array.path(),
        // Any host name is accepted, because that of the installed system is not known yet.
        "--homehost=any".to_owned(),
        "--metadata=1.2".to_owned(),
        format!("--level={}", array.level),
        format!("--raid-devices={}", array.devices.len()),
    ];
    if !array.spare.is_empty() {
        arguments.push(format!("--spare-devices={}", array.spare.len()));
    }
    arguments.extend(["--run".to_owned(), "--force".to_owned()]);
    arguments.extend(members.iter().cloned());
    let mut steps: Vec<_> = cleared(&members).collect();
    steps.push(Step::Run(Run::new("mdadm", arguments), members));
    steps.push(Step::Appear(array.path()));
    steps
}

fn volumes(group: &VolumeGroup) -> Vec<Step> {
    let lvm =
        |words: Vec<String>| Step::Run(Run::new("lvm", words), group.physical_volumes.clone());
    let tagged = |words: &mut Vec<String>, tags: &[String]| {
        let tags = tags.iter().filter(|tag| !tag.is_empty());
        words.extend(tags.map(|tag| format!("--addtag={tag}")));
    };
    let mut steps: Vec<_> = cleared(&group.physical_volumes).collect();
    let create = |program: &str| vec![program.to_owned(), "--yes".to_owned()];
    let mut words = create("pvcreate");
    words.push("-ff".to_owned());
    words.extend(group.physical_volumes.iter().cloned());
    steps.push(lvm(words));
    let mut words = create("vgcreate");
    tagged(&mut words, &group.tags);
    words.push(group.name.clone());
    words.extend(group.physical_volumes.iter().cloned());
    steps.push(lvm(words));
    for volume in &group.logical_volumes {
        let mut words = create("lvcreate");
        words.push("--wipesignatures=y".to_owned());
        tagged(&mut words, &volume.tags);
        match volume.size.bytes(1) {
            0 => words.push("--extents=100%FREE".to_owned()),
            bytes => words.push(format!("--size={bytes}b")),
        }
        words.push(format!("--name={}", volume.name));
        words.push(group.name.clone());
        words.extend(volume.opts.iter().cloned());
        steps.push(lvm(words));
        steps.push(Step::Appear(format!("/dev/{}/{}", group.name, volume.name)));
    }
    steps
}

/// Plans the creation of all filesystems.
pub fn format(storage: &Storage) -> Vec<Step> {
    storage.filesystems.iter().flat_map(filesystem).collect()
}

fn filesystem(filesystem: &Filesystem) -> Vec<Step> {
    let mount = &filesystem.mount;
    let (program, fixed): (_, &[&str]) = match mount.format.as_str() {
        SWAP => ("mkswap", &["--force"]),
        "ext2" => ("mke2fs", &["-q", "-F", "-t", "ext2"]),
        "ext3" => ("mke2fs", &["-q", "-F", "-t", "ext3"]),
        "xfs" => ("mkfs.xfs", &["-q", "-f"]),
        "btrfs" => ("mkfs.btrfs", &["-q", "-f"]),
        // -I allows a whole disk without partitions.
        "vfat" => ("mkfs.fat", &["-I"]),
        _ => ("mke2fs", &["-q", "-F", "-t", "ext4"]),
    };
    let fixed = fixed.iter().map(|word| (*word).to_owned());
    let options = mount.create.options.iter().filter(|option| !option.is_empty()).cloned();
    let words = options.chain(fixed).chain(std::iter::once(mount.device.clone()));
    let mut steps: Vec<_> = cleared(std::slice::from_ref(&mount.device)).collect();
    steps.push(Step::Run(Run::new(program, words), vec![mount.device.clone()]));
    steps
}

/// Returns a summary: `3 partitions on 2 disks, /dev/md0 (RAID 1 of 2 devices)`.
pub fn made(storage: &Storage) -> String {
    let count =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    let partitions: usize = storage.disks.iter().map(|disk| disk.partitions.len()).sum();
    let on = count(storage.disks.len(), "disk");
    parts.push(format!("{} on {on}", count(partitions, "partition")));
    for array in &storage.raid {
        let devices = count(array.devices.len(), "device");
        parts.push(format!("{} (RAID {} of {devices})", array.path(), array.level));
    }
    for group in &storage.volume_groups {
        let volumes = count(group.logical_volumes.len(), "volume");
        parts.push(format!("volume group {} ({volumes})", group.name));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests;
