//! `syslinux`: installs the boot loader syslinux on DEST_PARTITION and its boot record on
//! DEST_DISK, for a boot by BIOS. Upstream's SYSLINUX_VERSION is 3.86, which Debian no longer has.
//! The action installs 6.04 from the tools image, which reads the same `syslinux.cfg`, and says so
//! in its result.
//!
//! Unlike upstream, the boot record matches the type of partition table (MBR or GPT), and the
//! partition becomes active.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use imaging::disk::{Accept, Aligned, Disk, MEMORY_ALIGN};
use imaging::mount::{Mounted, Purpose};
use imaging::stream::blocking;
use imaging::tools::{Run, Tools};
use imaging::{Meter, disk, preserve, select};

use super::environment::Environment;
use crate::Error;

/// Version of syslinux in the tools image, from Debian.
const VERSION: &str = "6.04";
/// Valid values of SYSLINUX_VERSION; the first two are upstream's.
const VERSIONS: [&str; 3] = ["386", "3.86", VERSION];
/// Length of the code in a boot record, in bytes.
const PROGRAM: usize = 440;
/// File systems that syslinux can boot from.
const FORMATS: [&str; 6] = ["vfat", "ext4", "ext3", "ext2", "xfs", "btrfs"];

/// Boot loader to install, and its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syslinux {
    disk: PathBuf,
    partition: PathBuf,
    older: bool,
}

impl Syslinux {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        let version = environment.optional("SYSLINUX_VERSION").unwrap_or(VERSION);
        if !VERSIONS.contains(&version) {
            let reason = format!("{version:?} is not 3.86 or {VERSION}");
            return Err(environment.bad("SYSLINUX_VERSION", reason));
        }
        Ok(Self {
            disk: environment.device("DEST_DISK")?,
            partition: environment.device("DEST_PARTITION")?,
            older: version != VERSION,
        })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, Error> {
        let (named, part) = (self.disk.clone(), self.partition.clone());
        let found = blocking("finding the disk", move || Ok(Place::find(&named, &part)));
        let Place { disk, partition, number } = found.await??;
        let tools = Tools::get(meter).await?;
        let format = format(&tools, &partition, meter).await?;
        meter.say(format!("installing syslinux on {}", partition.display()));

        let (path, kind) = (partition.clone(), format.clone());
        let mounting = move || Mounted::mount(&path, &kind, Purpose::Write);
        let mounted = blocking("mounting", mounting).await?;
        let loader = Run::on("extlinux", &["--install"], "/mnt");
        let installed = tools.run_on(&loader, &mounted, meter).await;
        let unmounted = blocking("unmounting", move || mounted.unmount()).await;
        installed?;
        unmounted?;

        let records = ["mbr.bin", "gptmbr.bin"].map(|name| format!("usr/lib/EXTLINUX/{name}"));
        let [dos, gpt] = records.map(|path| tools.file(path));
        let (dos, gpt, path) = (dos.await?, gpt.await?, disk.clone());
        let writing = move || Ok(record(&path, number, &dos, &gpt));
        let table = blocking("writing the boot record", writing).await??;
        if table == Table::Gpt {
            start_by_gpt(&tools, &disk, number, meter).await?;
        }
        let older = if self.older {
            format!("; {VERSION} and not 3.86: modules (.c32) beside it must be of {VERSION}")
        } else {
            String::new()
        };
        Ok(format!(
            "installed syslinux {VERSION} on {} ({format}) and its record for {} on {}{older}",
            partition.display(),
            if table == Table::Gpt { "a GPT" } else { "a DOS table" },
            disk.display()
        ))
    }
}

/// Disk, partition and partition number for the boot loader.
struct Place {
    disk: PathBuf,
    partition: PathBuf,
    number: u32,
}

impl Place {
    fn find(disk: &Path, partition: &Path) -> Result<Self, Error> {
        let real = |named: &Path| -> Result<PathBuf, Error> {
            let path = select::resolve(named)?;
            disk::wait_for(&path)?;
            preserve::check(&path)?;
            Ok(path.canonicalize().unwrap_or(path))
        };
        let (disk, partition) = (real(disk)?, real(partition)?);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let folder = Path::new("/sys/class/block").join(name(&disk)).join(name(&partition));
        let number = std::fs::read_to_string(folder.join("partition"));
        let number = number.ok().and_then(|text| text.trim().parse().ok());
        let number = number.ok_or_else(|| Error::BadSetting {
            action: "syslinux",
            name: "DEST_PARTITION",
            reason: format!("{} is not a partition of {}", partition.display(), disk.display()),
        })?;
        Ok(Self { disk, partition, number })
    }
}

/// Returns the type of the partition's file system; an error if syslinux cannot boot from it.
async fn format(tools: &Tools, partition: &Path, meter: &Meter) -> Result<String, Error> {
    let path = partition.display().to_string();
    let words = ["-p", "-s", "TYPE", "-o", "value"];
    let found = tools.ask(&Run::on("blkid", &words, &path), meter).await;
    let found = found.unwrap_or_default().trim().to_owned();
    if FORMATS.contains(&found.as_str()) {
        return Ok(found);
    }
    let found = if found.is_empty() { "no file system" } else { found.as_str() };
    Err(Error::BadSetting {
        action: "syslinux",
        name: "DEST_PARTITION",
        reason: format!("{path} has {found}; syslinux starts from {}", FORMATS.join(", ")),
    })
}

/// Type of a disk's partition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Dos,
    Gpt,
}

/// Writes the boot record. Keeps the partition table, except for the active flag. Returns the
/// table's type.
fn record(path: &Path, number: u32, dos: &[u8], gpt: &[u8]) -> Result<Table, Error> {
    let disk = Disk::open(path, Accept::BlockDevices)?;
    let mut buffer = Aligned::new(MEMORY_ALIGN);
    let sector = &mut buffer.bytes_mut()[..disk.sector().min(MEMORY_ALIGN)];
    let what = |doing: &str| Error::io(format!("{doing} the boot record of {}", path.display()));
    disk.read(sector, 0).map_err(what("read"))?;
    let table = change(sector, number, dos, gpt).map_err(|reason| Error::BadSetting {
        action: "syslinux",
        name: "DEST_DISK",
        reason: format!("{} {reason}", path.display()),
    })?;
    disk.write(sector, 0).map_err(what("write"))?;
    // The partitions did not move, so the kernel need not read the table again.
    disk.flush().map_err(what("flush"))?;
    Ok(table)
}

/// Replaces the code in the first sector, and sets the active partition in a DOS table.
fn change(sector: &mut [u8], number: u32, dos: &[u8], gpt: &[u8]) -> Result<Table, String> {
    const ENTRIES: std::ops::Range<usize> = 446..510;
    const PROTECTIVE: u8 = 0xee;
    if sector.get(510..512) != Some(&[0x55, 0xaa]) {
        return Err("has no partition table; create one with the action storage first".to_owned());
    }
    let is_gpt = sector[ENTRIES].chunks(16).any(|entry| entry[4] == PROTECTIVE);
    let (table, program) = if is_gpt { (Table::Gpt, gpt) } else { (Table::Dos, dos) };
    let program = program.get(..program.len().min(PROGRAM)).unwrap_or_default();
    if table == Table::Dos {
        if number > 4 {
            return Err(format!(
                "has a DOS table, whose partition {number} cannot boot; use 1 to 4"
            ));
        }
        for (index, entry) in (1..).zip(sector[ENTRIES].chunks_mut(16)) {
            entry[0] = if index == number { 0x80 } else { 0 };
        }
    }
    sector[..PROGRAM].fill(0);
    sector[..program.len()].copy_from_slice(program);
    Ok(table)
}

/// Sets LegacyBIOSBootable, by which the boot record finds the GPT partition. Keeps other
/// attributes.
async fn start_by_gpt(
    tools: &Tools,
    disk: &Path,
    number: u32,
    meter: &Meter,
) -> Result<(), imaging::Error> {
    const STARTS: &str = "LegacyBIOSBootable";
    let attributes = |more: Option<String>| {
        let words = ["--part-attrs".to_owned(), disk.display().to_string(), number.to_string()];
        Run::new("sfdisk", words.into_iter().chain(more))
    };
    let known = tools.ask(&attributes(None), meter).await?;
    let others = known.split([',', ' ', '\n']).filter(|word| !word.is_empty() && *word != STARTS);
    let all: Vec<_> = others.chain([STARTS]).collect();
    tools.run(&attributes(Some(all.join(","))), meter).await
}

#[cfg(test)]
mod tests {
    use super::{PROGRAM, Table, change};

    #[test]
    fn a_record_is_of_the_tables_kind_and_keeps_the_table() {
        let (dos, gpt) = ([1; PROGRAM], [2; 400]);
        let mut sector = [7; 512];
        let error = change(&mut sector, 1, &dos, &gpt).unwrap_err();
        assert!(error.starts_with("has no partition table"), "{error}");
        assert_eq!(sector, [7; 512]);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        let before = sector;
        let error = change(&mut sector, 5, &dos, &gpt).unwrap_err();
        assert!(error.contains("partition 5 cannot boot"), "{error}");
        assert_eq!(sector, before);

        assert_eq!(change(&mut sector, 2, &dos, &gpt), Ok(Table::Dos));
        assert_eq!(sector[..PROGRAM], dos);
        let active: Vec<_> = (0..4).map(|entry| sector[446 + 16 * entry]).collect();
        assert_eq!(active, [0, 0x80, 0, 0]);
        assert_eq!((&sector[440..446], &sector[447..462]), (&before[440..446], &before[447..462]));

        sector[446 + 4] = 0xee;
        assert_eq!(change(&mut sector, 9, &dos, &gpt), Ok(Table::Gpt));
        assert_eq!((&sector[..400], &sector[400..PROGRAM]), (&gpt[..], &[0; 40][..]));
        assert_eq!(sector[446 + 16], 0x80, "as it was");
    }
}
