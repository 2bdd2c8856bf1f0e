//! Builds the two empty file systems that the box writes to.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::layout::Part;
use crate::Error;
use crate::program::Program;

const MKFS: Program = Program { name: "mkfs.ext4", package: "e2fsprogs" };
const DUMPE2FS: Program = Program { name: "dumpe2fs", package: "e2fsprogs" };
/// Bytes of a block: the maximum on x86, so that the file system can grow to any disk.
const BLOCK: u64 = 4096;
/// Space is reserved for the group descriptors of this many blocks (4 TiB), so that growing needs
/// no new format.
const GROWS_TO_BLOCKS: u64 = 1 << 30;

/// Built file system, in a file of its partition's size.
#[derive(Debug)]
pub(crate) struct BuiltFileSystem {
    pub path: PathBuf,
    /// Byte ranges that are not free. A tool that skips free blocks must write these.
    pub used: Vec<Range<u64>>,
}

pub(crate) fn make(part: Part, folder: &Path, epoch: u64) -> Result<BuiltFileSystem, Error> {
    let path = folder.join(part.label());
    let file = File::create(&path).and_then(|file| file.set_len(part.size()));
    file.map_err(|source| Error::Write { path: path.clone(), source })?;
    let uuid = part.uuid();
    let mut options = format!("hash_seed={uuid},lazy_itable_init=0,lazy_journal_init=0");
    if part == Part::Cache {
        // The cache contains few and large files, and grows to the end of the disk.
        options += &format!(",resize={GROWS_TO_BLOCKS}");
    }
    let mut mkfs = MKFS.command(epoch);
    mkfs.args(["-q", "-F", "-b", "4096", "-m", "0", "-J", "size=16", "-L", part.label()])
        // Few inodes, because inode tables are written at each flash.
        .args(["-i", "65536"])
        .args(["-U", &uuid.to_string(), "-E", &options])
        .arg(&path);
    MKFS.run(&mut mkfs, &path)?;
    let listed = DUMPE2FS.run(DUMPE2FS.command(epoch).arg(&path), &path)?;
    Ok(BuiltFileSystem { used: used(&listed, part.size()), path })
}

/// Returns the ranges that `dumpe2fs` does not list as free.
fn used(listed: &str, size: u64) -> Vec<Range<u64>> {
    let lists = listed.lines().filter_map(|line| line.strip_prefix("  Free blocks: "));
    let mut used = Vec::new();
    let mut at = 0;
    for range in lists.flat_map(|list| list.split(", ")) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u64>(), last.trim().parse::<u64>())
        else {
            continue;
        };
        if first * BLOCK > at {
            used.push(at..first * BLOCK);
        }
        at = (last + 1) * BLOCK;
    }
    if at < size {
        used.push(at..size);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_not_free_is_used() {
        let listed = "Group 0: (Blocks 0-99)\n  Free blocks: 10-19, 25\n  Free inodes: 1-9\n\
                      Group 1:\n  Free blocks: 100-159\n  Free blocks: \n";
        let blocks = |ranges: &[Range<u64>]| -> Vec<Range<u64>> {
            ranges.iter().map(|it| it.start / BLOCK..it.end / BLOCK).collect()
        };
        assert_eq!(blocks(&used(listed, 160 * BLOCK)), [0..10, 20..25, 26..100]);
        assert_eq!(blocks(&used(listed, 170 * BLOCK)), [0..10, 20..25, 26..100, 160..170]);
        let all = used("", 5 * BLOCK);
        assert_eq!(
            (all[0].clone(), all.len()),
            (0..5 * BLOCK, 1),
            "what nobody says is free is used"
        );
    }
}
