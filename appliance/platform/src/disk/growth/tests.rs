use std::io::Cursor;

use gpt::partition_types::LINUX_FS;

use super::*;

const MIB: u64 = 1 << 20;

/// Builds a disk of `mib` MiB with an image made for 16 MiB. The image has two partitions; the last
/// partition has 4 MiB.
fn disk(mib: u64) -> Vec<u8> {
    let small = vec![0; 16 << 20];
    let config = GptConfig::new().writable(true).logical_block_size(LogicalBlockSize::Lb512);
    let mut table = config.create_from_device(Cursor::new(small), None).unwrap();
    for (name, mib) in [("state", 8), ("cache", 4)] {
        table.add_partition(name, mib * MIB, LINUX_FS, 0, Some(ALIGNED)).unwrap();
    }
    let mut bytes = table.write().unwrap();
    ProtectiveMBR::with_lb_size((16 << 11) - 1).overwrite_lba0(&mut bytes).unwrap();
    let mut bytes = bytes.into_inner();
    bytes.resize(usize::try_from(mib * MIB).unwrap(), 0);
    bytes
}

/// Returns a disk on which `changed` replaces some sectors of `whole`.
fn changed(whole: &[u8], changed: Sectors) -> StagedDisk<Cursor<&[u8]>> {
    StagedDisk { disk: Cursor::new(whole), at: 0, changed }
}

/// Returns the first and last sector of each partition. The primary table is used if it is valid,
/// otherwise the backup table, as in the kernel.
fn partitions(mut disk: impl Read + Seek + std::fmt::Debug) -> Vec<(u64, u64)> {
    let table = open(&mut disk).unwrap();
    table.partitions().values().map(|part| (part.first_lba, part.last_lba)).collect()
}

fn apply<'a>(disk: &mut [u8], changes: impl IntoIterator<Item = (&'a u64, &'a [u8; 512])>) {
    for (sector, bytes) in changes {
        let at = usize::try_from(sector * SECTOR).unwrap();
        disk[at..at + 512].copy_from_slice(bytes);
    }
}

#[test]
fn the_last_partition_takes_the_rest() {
    let mut bytes = disk(64);
    let before = partitions(Cursor::new(&bytes[..]));
    let (grown, changes) = plan(Cursor::new(&bytes[..]), 2).unwrap().unwrap();
    assert_eq!((grown.from / MIB, grown.to / MIB), (4, 64 - 1 - before[1].0 / ALIGNED));
    changes.iter().for_each(|pass| apply(&mut bytes, pass));
    let after = partitions(Cursor::new(&bytes[..]));
    assert_eq!(after[0], before[0]);
    assert_eq!((after[1].0, (after[1].1 + 1) % ALIGNED), (before[1].0, 0));
    assert_eq!(plan(Cursor::new(bytes), 2).unwrap(), None, "once is enough");
}

#[test]
fn what_is_not_last_or_has_no_room_stays() {
    assert_eq!(plan(Cursor::new(disk(64)), 1).unwrap(), None);
    assert_eq!(plan(Cursor::new(disk(64)), 7).unwrap(), None);
    assert!(plan(Cursor::new(vec![0; 1 << 20]), 1).is_err(), "no table");
}

/// Test of power cuts after any number of sectors of a pass. The sectors are written in ascending
/// and in descending order.
#[test]
fn a_cut_at_any_sector_leaves_a_table() {
    let whole = disk(64);
    let plan_for = |sectors: &Sectors| plan(changed(&whole, sectors.clone()), 2).unwrap();
    let partitions_of = |sectors: &Sectors| partitions(changed(&whole, sectors.clone()));
    let (_, changes) = plan_for(&Sectors::new()).unwrap();
    let before = partitions_of(&Sectors::new());
    let after = partitions_of(&changes.iter().flatten().map(|(at, bytes)| (*at, *bytes)).collect());
    let mut written = Sectors::new();
    for pass in &changes {
        let forth: Vec<_> = pass.iter().collect();
        let back: Vec<_> = pass.iter().rev().collect();
        for (order, cut) in [forth, back].iter().flat_map(|it| (0..=it.len()).map(move |n| (it, n)))
        {
            let mut disk = written.clone();
            disk.extend(order[..cut].iter().map(|(at, bytes)| (**at, **bytes)));
            let found = partitions_of(&disk);
            assert!(found == before || found == after, "{cut}: {found:?}");
            // The next start writes the remaining changes.
            if let Some((_, left)) = plan_for(&disk) {
                disk.extend(left.into_iter().flatten());
            }
            assert_eq!(partitions_of(&disk), after, "{cut}");
        }
        written.extend(pass);
    }
    assert!(changes.iter().all(|pass| pass.len() > 2) && before != after);
}
