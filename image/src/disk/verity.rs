//! Builds dm-verity's hash tree, with which the kernel detects a changed byte of the root when it
//! reads it.
//!
//! The data is padded to whole blocks of [`BLOCK`] bytes. A block with the superblock follows, and
//! then the tree, the top level first. A block of the tree contains the SHA-256 sums of
//! [`BRANCHES`] blocks of the level below, padded with zeros. Every sum covers the salt and then
//! the block. The sum of the single top block is the root hash, which the kernel gets as a
//! parameter.
//!
//! The superblock, all integers little-endian, followed by zeros to the block's end:
//!
//! ```text
//! offset  size
//!      0     8  "verity" and two zeros
//!      8     4  version, 1
//!     12     4  kind of hashing, 1 (salt first)
//!     16    16  UUID
//!     32    32  "sha256", zeros behind it
//!     64     4  bytes of a data block, 4096
//!     68     4  bytes of a hash block, 4096
//!     72     8  data blocks
//!     80     2  bytes of the salt
//!     82     6  zeros
//!     88   256  the salt, zeros behind it
//! ```

use platform::bundle::Verity;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Bytes of a data block and of a tree block.
pub const BLOCK: usize = 4096;
/// Sums in a block of the tree.
pub const BRANCHES: usize = BLOCK / 32;

/// Returns `data` padded to whole blocks, followed by superblock and tree, and the parameters for
/// the kernel. The salt is derived from the data, so the same root gives the same tree.
pub fn protect(mut data: Vec<u8>, uuid: Uuid) -> (Vec<u8>, Verity) {
    // A single block would have no tree: its own sum would be the root hash.
    data.resize(data.len().next_multiple_of(BLOCK).max(2 * BLOCK), 0);
    let salt: [u8; 32] =
        Sha256::new().chain_update(b"tinbox verity").chain_update(&data).finalize().into();
    let mut levels = vec![level(&data, &salt)];
    while levels.last().is_some_and(|last| last.len() > BLOCK) {
        let next = level(levels.last().map(Vec::as_slice).unwrap_or_default(), &salt);
        levels.push(next);
    }
    let top = levels.last().map(Vec::as_slice).unwrap_or_default();
    let verity =
        Verity { root_hash: sum(top, &salt), salt, data_blocks: (data.len() / BLOCK) as u64 };
    let header = superblock(&verity, uuid);
    data.extend_from_slice(&header);
    for level in levels.iter().rev() {
        data.extend_from_slice(level);
    }
    (data, verity)
}

/// Returns the sums of all blocks of `below`, padded to whole blocks.
fn level(below: &[u8], salt: &[u8; 32]) -> Vec<u8> {
    let mut sums: Vec<u8> = below.chunks(BLOCK).flat_map(|block| sum(block, salt)).collect();
    sums.resize(sums.len().next_multiple_of(BLOCK), 0);
    sums
}

fn sum(block: &[u8], salt: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(block).finalize().into()
}

fn superblock(verity: &Verity, uuid: Uuid) -> Vec<u8> {
    let mut block = Vec::with_capacity(BLOCK);
    block.extend_from_slice(b"verity\0\0");
    block.extend_from_slice(&1u32.to_le_bytes());
    block.extend_from_slice(&1u32.to_le_bytes());
    block.extend_from_slice(uuid.as_bytes());
    let mut algorithm = [0; 32];
    algorithm[..6].copy_from_slice(b"sha256");
    block.extend_from_slice(&algorithm);
    block.extend_from_slice(&(BLOCK as u32).to_le_bytes());
    block.extend_from_slice(&(BLOCK as u32).to_le_bytes());
    block.extend_from_slice(&verity.data_blocks.to_le_bytes());
    block.extend_from_slice(&(verity.salt.len() as u16).to_le_bytes());
    block.extend_from_slice(&[0; 6]);
    block.extend_from_slice(&verity.salt);
    block.resize(BLOCK, 0);
    block
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// cryptsetup verifies the tree, at every number of levels that the box can have.
    #[test]
    fn veritysetup_agrees() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root");
        for blocks in [2, BRANCHES, BRANCHES + 1, BRANCHES * BRANCHES + 1] {
            let data: Vec<u8> = (0..blocks * BLOCK - 7).map(|at| (at % 251) as u8).collect();
            let (image, verity) = protect(data, Uuid::from_u128(7));
            fs::write(&path, &image).unwrap();
            let verify = |root: &[u8; 32]| {
                let status = Command::new("/usr/sbin/veritysetup")
                    .arg("verify")
                    .arg(format!("--hash-offset={}", blocks * BLOCK))
                    .args([&path, &path])
                    .arg(stdx::hex(root))
                    .output()
                    .unwrap();
                status.status.success()
            };
            assert!(verify(&verity.root_hash), "{blocks} blocks");
            let mut other = verity.root_hash;
            other[0] ^= 1;
            assert!(!verify(&other), "{blocks} blocks");
        }
    }
}
