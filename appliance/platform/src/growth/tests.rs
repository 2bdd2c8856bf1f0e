use std::io::Cursor;

use gpt::partition_types::LINUX_FS;

use super::*;

const MIB: u64 = 1 << 20;

/// A disk of `mib` MiB whose image was made for 16: two partitions, the last one of 4 MiB.
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

/// Partitions' first and last sectors, by the table that the kernel would take: the first, or else
/// that at the disk's end.
fn partitions(disk: &[u8]) -> Vec<(u64, u64)> {
    let mut disk = Cursor::new(disk.to_vec());
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
    let before = partitions(&bytes);
    let (grown, changes) = plan(Cursor::new(bytes.clone()), 2).unwrap().unwrap();
    assert_eq!((grown.from / MIB, grown.to / MIB), (4, 64 - 1 - before[1].0 / ALIGNED));
    changes.iter().for_each(|pass| apply(&mut bytes, pass));
    let after = partitions(&bytes);
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

/// The plug is pulled with any number of the sectors of a pass on the disk, in any order that two
/// orders of the same writes can tell apart.
#[test]
fn a_cut_at_any_sector_leaves_a_table() {
    let whole = disk(64);
    let (_, changes) = plan(Cursor::new(whole.clone()), 2).unwrap().unwrap();
    let [before, after] = [whole.clone(), {
        let mut done = whole.clone();
        changes.iter().for_each(|pass| apply(&mut done, pass));
        done
    }]
    .map(|disk| partitions(&disk));
    let mut written = whole;
    for pass in &changes {
        for cut in 0..=pass.len() {
            let (mut forth, mut back) = (written.clone(), written.clone());
            apply(&mut forth, pass.iter().take(cut));
            apply(&mut back, pass.iter().rev().take(cut));
            for disk in [forth, back] {
                let found = partitions(&disk);
                assert!(found == before || found == after, "{cut}: {found:?}");
                // The next start does what is left to do.
                let mut disk = disk;
                if let Some((_, left)) = plan(Cursor::new(disk.clone()), 2).unwrap() {
                    left.iter().for_each(|pass| apply(&mut disk, pass));
                }
                assert_eq!(partitions(&disk), after, "{cut}");
            }
        }
        apply(&mut written, pass);
    }
}
