//! Block map beside an image: the blocks that must be written, each range with its SHA-256.
//! bmaptool writes only these (its format 2.0). So the map contains every block that the system
//! reads, also zeros. A disk with old content is then equivalent to a new one.

use std::fmt::Write as _;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::layout::disk_size;
use crate::Error;

const BLOCK: u64 = 4096;
/// Bytes that are read at a time.
const PIECE: u64 = 1 << 20;

/// Ranges of blocks with their checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockMap {
    ranges: Vec<(Range<u64>, [u8; 32])>,
}

impl BlockMap {
    /// Creates the map of the image at `path`, where the ranges `bytes` must be written, in any
    /// order.
    ///
    /// # Errors
    /// The image cannot be read.
    pub fn of(path: &Path, bytes: &[Range<u64>]) -> Result<Self, Error> {
        let read = |source| Error::Read { path: path.to_owned(), source };
        let image = File::open(path).map_err(read)?;
        let mut ranges = Vec::new();
        for range in joined(bytes) {
            let mut sum = Sha256::new();
            let end = range.end * BLOCK;
            let mut at = range.start * BLOCK;
            while at < end {
                let mut piece = vec![0; (end - at).min(PIECE) as usize];
                image.read_exact_at(&mut piece, at).map_err(read)?;
                sum.update(&piece);
                at += piece.len() as u64;
            }
            ranges.push((range, sum.finalize().into()));
        }
        Ok(Self { ranges })
    }

    /// Returns the bytes that are written.
    pub fn mapped(&self) -> u64 {
        self.ranges.iter().map(|(range, _)| (range.end - range.start) * BLOCK).sum()
    }

    /// Returns the map as XML for bmaptool. The file's own checksum covers the file with zeros in
    /// the checksum's place.
    pub fn to_xml(&self) -> String {
        let zeros = "0".repeat(64);
        let xml = self.xml(&zeros);
        let sum = stdx::hex(&Sha256::digest(&xml));
        xml.replacen(&zeros, &sum, 1)
    }

    fn xml(&self, sum: &str) -> String {
        let size = disk_size();
        let (blocks, mapped) = (size / BLOCK, self.mapped() / BLOCK);
        let mut xml = format!(
            "<?xml version=\"1.0\" ?>\n<bmap version=\"2.0\">\n\
             \x20   <ImageSize> {size} </ImageSize>\n    <BlockSize> {BLOCK} </BlockSize>\n\
             \x20   <BlocksCount> {blocks} </BlocksCount>\n\
             \x20   <MappedBlocksCount> {mapped} </MappedBlocksCount>\n\
             \x20   <ChecksumType> sha256 </ChecksumType>\n\
             \x20   <BmapFileChecksum> {sum} </BmapFileChecksum>\n    <BlockMap>\n"
        );
        for (range, sum) in &self.ranges {
            let (first, last) = (range.start, range.end - 1);
            let blocks = if first == last { first.to_string() } else { format!("{first}-{last}") };
            let sum = stdx::hex(sum);
            let _ = writeln!(xml, "        <Range chksum=\"{sum}\"> {blocks} </Range>");
        }
        xml + "    </BlockMap>\n</bmap>\n"
    }
}

/// Returns the blocks that `bytes` touch, in order, without overlaps.
fn joined(bytes: &[Range<u64>]) -> Vec<Range<u64>> {
    let blocks = bytes.iter().map(|it| it.start / BLOCK..it.end.div_ceil(BLOCK));
    let mut sorted: Vec<Range<u64>> = blocks.filter(|it| !it.is_empty()).collect();
    sorted.sort_by_key(|it| it.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_cover_every_touched_block() {
        let at = |first: u64, end: u64| first..end;
        assert_eq!(joined(&[at(8192, 8193), at(0, 1), at(4096, 8192), at(7, 7)]), [at(0, 3)]);
        assert_eq!(joined(&[at(0, 4096), at(8191, 8193)]), [at(0, 3)]);
        assert_eq!(joined(&[at(0, 4096), at(8192, 8193)]), [at(0, 1), at(2, 3)]);
        assert_eq!(joined(&[]), []);
    }
}
