//! Builds the EFI system partition: a FAT16 file system with the file `EFI/BOOT/BOOTX64.EFI`.
//! Firmware searches for a loader under this name on removable media (UEFI specification, section
//! 3.5.1.1).
//!
//! Offsets are from Microsoft's "FAT: General Overview of On-Disk Format" (version 1.03).

use super::pieces::{Fields as _, Pieces};
use crate::Error;

const SECTOR: u64 = 512;
/// Number of entries in the root folder.
const ROOT_ENTRIES: u64 = 512;
const ENTRY: usize = 32;
/// Permitted number of clusters of a FAT16 file system. With fewer clusters it would be FAT12, with
/// more FAT32.
const CLUSTERS: std::ops::Range<u64> = 4085..65_525;
/// Maximum sectors of a cluster (32 KiB).
const MAX_CLUSTER: u64 = 64;
/// Clusters of the two folders, one each, before the file's clusters.
const FOLDERS: u64 = 2;

const FOLDER: u8 = 0x10;
const VOLUME: u8 = 0x08;
const ARCHIVE: u8 = 0x20;
/// Date of all entries: 1 January 1980, the first date of the format.
const DATE: u16 = 0x21;

/// Sizes of the file system, computed from the size of the file.
struct Geometry {
    cluster: u64,
    clusters: u64,
    table: u64,
}

impl Geometry {
    fn of(file: u64) -> Result<Self, Error> {
        let mut cluster = 1;
        loop {
            let used = FOLDERS + file.div_ceil(cluster * SECTOR);
            // Some spare clusters: a count near the limit is read as another format by some
            // implementations.
            let clusters = (used + 16).max(CLUSTERS.start + 16);
            if clusters + 16 < CLUSTERS.end {
                // Two bytes for each cluster, and two reserved entries.
                let table = ((clusters + 2) * 2).div_ceil(SECTOR);
                return Ok(Self { cluster, clusters, table });
            }
            cluster *= 2;
            if cluster > MAX_CLUSTER {
                return Err(Error::MediumTooLarge { length: file });
            }
        }
    }

    fn sectors(&self) -> u64 {
        1 + 2 * self.table + ROOT_ENTRIES * ENTRY as u64 / SECTOR + self.clusters * self.cluster
    }
}

/// Returns the bytes of the partition with the file `loader`.
pub(super) fn system_partition(loader: Pieces<'_>) -> Result<Pieces<'_>, Error> {
    let size =
        u32::try_from(loader.len()).map_err(|_| Error::MediumTooLarge { length: loader.len() })?;
    let geometry = Geometry::of(loader.len())?;
    let cluster = geometry.cluster * SECTOR;
    let table = allocation(&geometry, loader.len().div_ceil(cluster));
    let mut out = Pieces::default();
    out.push(boot_sector(&geometry));
    out.push(table.clone());
    out.push(table);
    let end = out.len() + ROOT_ENTRIES * ENTRY as u64;
    out.push(folder(&[(*b"TINBOX     ", VOLUME, 0, 0), (*b"EFI        ", FOLDER, 2, 0)]));
    out.fill(end);
    for (own, parent, entry) in
        [(2, 0, (*b"BOOT       ", FOLDER, 3, 0)), (3, 2, (*b"BOOTX64 EFI", ARCHIVE, 4, size))]
    {
        let end = out.len() + cluster;
        let dots = [(*b".          ", FOLDER, own, 0), (*b"..         ", FOLDER, parent, 0)];
        out.push(folder(&[dots[0], dots[1], entry]));
        out.fill(end);
    }
    out.append(loader);
    out.fill(geometry.sectors() * SECTOR);
    Ok(out)
}

fn boot_sector(geometry: &Geometry) -> Vec<u8> {
    let mut sector = vec![0; SECTOR as usize];
    // Jump over the fields, to code that does not exist: only UEFI boots from this partition.
    sector[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    sector[3..11].copy_from_slice(b"TINBOX  ");
    sector.u16_at(11, SECTOR as u16);
    sector[13] = geometry.cluster as u8;
    sector.u16_at(14, 1);
    sector[16] = 2;
    sector.u16_at(17, ROOT_ENTRIES as u16);
    sector[21] = 0xf8;
    sector.u16_at(22, geometry.table as u16);
    // Sectors per track and heads: unused, but some implementations check them.
    sector.u16_at(24, 32);
    sector.u16_at(26, 64);
    match u16::try_from(geometry.sectors()) {
        Ok(sectors) => sector.u16_at(19, sectors),
        // At most 65,525 clusters of 64 sectors, and the tables.
        Err(_) => sector.u32_at(32, geometry.sectors() as u32),
    }
    sector[36] = 0x80;
    sector[38] = 0x29;
    sector[39..43].copy_from_slice(b"TBOX");
    sector[43..54].copy_from_slice(b"TINBOX     ");
    sector[54..62].copy_from_slice(b"FAT16   ");
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// Returns the allocation table. Each folder is a chain of one cluster; the file's clusters are
/// consecutive.
fn allocation(geometry: &Geometry, file: u64) -> Vec<u8> {
    const END: u16 = 0xffff;
    let mut table = vec![0; (geometry.table * SECTOR) as usize];
    table.u16_at(0, 0xfff8);
    table.u16_at(2, END);
    table.u16_at(4, END);
    table.u16_at(6, END);
    for index in 0..file {
        // The geometry ensures that cluster numbers fit into 16 bits.
        let cluster = 2 + FOLDERS + index;
        let next = if index + 1 == file { END } else { (cluster + 1) as u16 };
        table.u16_at(cluster as usize * 2, next);
    }
    table
}

/// Returns the entries of a folder: name, attributes, first cluster, size.
fn folder(entries: &[([u8; 11], u8, u16, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; entries.len() * ENTRY];
    for (entry, (name, attributes, cluster, size)) in bytes.chunks_mut(ENTRY).zip(entries) {
        entry[..11].copy_from_slice(name);
        entry[11] = *attributes;
        for date in [16, 18, 24] {
            entry.u16_at(date, DATE);
        }
        entry.u16_at(26, *cluster);
        entry.u32_at(28, *size);
    }
    bytes
}
