//! Superblock of an ext4 file system (`fs/ext4/ext4.h`, `struct ext4_super_block`) and its first
//! copy, which was written when the file system was made. The module does not access the host.

use crc::{CRC_32_ISCSI, Crc};

/// Size of a superblock in bytes.
pub(super) const BYTES: usize = 1024;
/// Byte offset of the superblock on the partition.
pub(super) const AT: u64 = 1024;
/// Byte offset of the first copy: the first block of the second group, with blocks of 4 KiB.
pub(super) const COPY_AT: u64 = 32_768 * 4096;

const CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Byte offsets of fields in the superblock.
const MAGIC: usize = 0x38;
const STATE: usize = 0x3a;
const GROUP: usize = 0x5a;
const COMPATIBLE: usize = 0x5c;
const INCOMPATIBLE: usize = 0x60;
const READ_ONLY_COMPATIBLE: usize = 0x64;
const CHECKSUM: usize = 0x3fc;
/// Values of superblock fields: magic number, state flag and feature flags.
const EXT4: u16 = 0xef53;
const HAS_ERRORS: u16 = 2;
const HAS_JOURNAL: u32 = 0x4;
const NEEDS_RECOVERY: u32 = 0x4;
const METADATA_CHECKSUM: u32 = 0x400;

type Block = [u8; BYTES];

/// Returns the superblock to write over `first`, or `None` unless `first` is damaged and `copy` is
/// valid. The new superblock requests a replay of the journal, because the volume may not have been
/// unmounted. An empty journal stays empty.
pub(super) fn mended(first: &Block, copy: &Block) -> Option<Block> {
    if is_whole(first) || !is_whole(copy) || u16_at(copy, GROUP) != 1 {
        return None;
    }
    let mut block = *copy;
    put(&mut block, GROUP, &0_u16.to_le_bytes());
    put(&mut block, STATE, &HAS_ERRORS.to_le_bytes());
    if u32_at(&block, COMPATIBLE) & HAS_JOURNAL != 0 {
        let features = u32_at(&block, INCOMPATIBLE) | NEEDS_RECOVERY;
        put(&mut block, INCOMPATIBLE, &features.to_le_bytes());
    }
    let sum = checksum(&block);
    put(&mut block, CHECKSUM, &sum.to_le_bytes());
    Some(block)
}

/// True for a superblock with a correct magic number and checksum.
fn is_whole(block: &Block) -> bool {
    u16_at(block, MAGIC) == EXT4
        && u32_at(block, READ_ONLY_COMPATIBLE) & METADATA_CHECKSUM != 0
        && u32_at(block, CHECKSUM) == checksum(block)
}

/// Returns the checksum of all bytes before the checksum field: CRC-32C without its final
/// inversion.
fn checksum(block: &Block) -> u32 {
    !CRC_32C.checksum(&block[..CHECKSUM])
}

fn u16_at(block: &Block, at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

fn u32_at(block: &Block, at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

fn put(block: &mut Block, at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_kernels() {
        // Check value of CRC-32C, as listed in catalogs of CRCs.
        assert_eq!(CRC_32C.checksum(b"123456789"), 0xe306_9283);
    }

    /// Builds a superblock with the fields that this module uses.
    fn superblock(group: u16) -> Block {
        let mut block = [7; BYTES];
        put(&mut block, MAGIC, &EXT4.to_le_bytes());
        put(&mut block, GROUP, &group.to_le_bytes());
        put(&mut block, COMPATIBLE, &HAS_JOURNAL.to_le_bytes());
        put(&mut block, INCOMPATIBLE, &0x2c2_u32.to_le_bytes());
        put(&mut block, READ_ONLY_COMPATIBLE, &METADATA_CHECKSUM.to_le_bytes());
        let sum = checksum(&block);
        put(&mut block, CHECKSUM, &sum.to_le_bytes());
        block
    }

    #[test]
    fn a_damaged_superblock_is_restored_and_its_journal_replayed() {
        for first in [[0; BYTES], [0xa5; BYTES], {
            let mut flipped = superblock(0);
            flipped[0x20] ^= 1;
            flipped
        }] {
            let block = mended(&first, &superblock(1)).unwrap();
            assert!(is_whole(&block));
            assert_eq!((u16_at(&block, GROUP), u16_at(&block, STATE)), (0, HAS_ERRORS));
            assert_eq!(u32_at(&block, INCOMPATIBLE), 0x2c6);
        }
    }

    #[test]
    fn a_superblock_that_is_whole_is_never_replaced() {
        assert_eq!(mended(&superblock(0), &superblock(1)), None);
        let mut damaged = superblock(1);
        damaged[9] ^= 1;
        assert_eq!(mended(&[0; BYTES], &damaged), None, "from a copy that is damaged too");
        assert_eq!(mended(&[0; BYTES], &[0; BYTES]), None);
        assert_eq!(mended(&[0; BYTES], &superblock(3)), None, "from another group's");
    }
}
