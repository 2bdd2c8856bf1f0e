//! Reads the virtual disk in a qcow2 image (versions 2 and 3).
//!
//! Format: QEMU's `docs/interop/qcow2.txt`. Clusters may be plain, zero, absent (zero without a
//! backing file), or compressed with deflate or zstd. Unsupported, with an error: a backing file,
//! an external data file, encryption, subclusters, an image marked corrupt. Internal snapshots are
//! ignored, as in `qemu-img convert`.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};

/// Maximum size of the L1 table in bytes, as in QEMU.
const L1_BYTES_MAX: u64 = 32 << 20;
/// Known bits of the header's incompatible features.
const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const COMPRESSION_TYPE: u64 = 1 << 3;
const SUBCLUSTERS: u64 = 1 << 4;
/// Bits 9 to 55 of a table entry: offset in the file.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
/// Bit 62 of an L2 entry: the cluster is compressed.
const COMPRESSED: u64 = 1 << 62;
/// Bit 0 of an L2 entry since version 3: the cluster reads as zeros, with any offset.
const ZERO: u64 = 1;

/// Kind of content in the file, as a hint for reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Header, L1 table or L2 table; read in any order.
    Table,
    /// Content of the disk, usually read in order.
    Data,
}

/// Image file that is read by offset.
pub trait Storage {
    /// Returns the length of the file in bytes.
    fn length(&self) -> u64;

    /// Fills `out` from `offset`. The caller ensures that the range is within the file.
    fn read_at(&mut self, offset: u64, out: &mut [u8], part: Part) -> io::Result<()>;
}

/// Sequential reader of the disk in a qcow2 file.
pub struct Disk<S> {
    storage: S,
    /// Size of the virtual disk in bytes.
    size: u64,
    cluster_bits: u32,
    version: u32,
    zstd: bool,
    l1: Vec<u64>,
    /// L2 table that was read last: its index in the L1 table, and its entries.
    l2: Option<(usize, Vec<u64>)>,
    /// Compressed cluster that was decoded last: its index and bytes.
    decoded: Option<(u64, Vec<u8>)>,
    at: u64,
}

/// Location of a cluster's content in the file.
enum Place {
    Zeros,
    Plain(u64),
    Packed { offset: u64, length: u64 },
}

fn bad(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_be_bytes(bytes.unwrap_or_default())
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(bytes.unwrap_or_default())
}

impl<S: Storage> Disk<S> {
    /// Reads the header and the L1 table.
    ///
    /// # Errors
    /// The image has an unsupported feature, or is damaged.
    pub fn open(mut storage: S) -> io::Result<Self> {
        let mut header = [0; 112];
        let known = usize::try_from(storage.length()).unwrap_or(112).min(112);
        if known < 72 {
            return Err(bad("the file is too short for a header"));
        }
        storage.read_at(0, &mut header[..known], Part::Table)?;
        let version = half(&header, 4);
        let zstd = check(&header, version, &mut storage)?;
        let cluster_bits = half(&header, 20);
        if !(9..=21).contains(&cluster_bits) {
            return Err(bad(format!("clusters of 2^{cluster_bits} bytes are out of bounds")));
        }
        let size = word(&header, 24);
        let per_l1 = 1_u64 << (cluster_bits + cluster_bits - 3);
        let entries = size.div_ceil(per_l1);
        if entries > u64::from(half(&header, 36)) || entries * 8 > L1_BYTES_MAX {
            return Err(bad("its L1 table does not cover the disk"));
        }
        let l1 = table(&mut storage, word(&header, 40), entries)?;
        Ok(Self { storage, size, cluster_bits, version, zstd, l1, l2: None, decoded: None, at: 0 })
    }

    /// Size of the virtual disk in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn cluster(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// Returns the location of the content of cluster `index`.
    fn place(&mut self, index: u64) -> io::Result<Place> {
        let l2_bits = self.cluster_bits - 3;
        let first = usize::try_from(index >> l2_bits).unwrap_or(usize::MAX);
        let l2_offset = self.l1.get(first).copied().unwrap_or(0) & OFFSET;
        if l2_offset == 0 {
            return Ok(Place::Zeros);
        }
        if self.l2.as_ref().is_none_or(|(known, _)| *known != first) {
            if !l2_offset.is_multiple_of(self.cluster()) {
                return Err(bad("one of its tables is not aligned to a cluster"));
            }
            let entries = table(&mut self.storage, l2_offset, 1 << l2_bits)?;
            self.l2 = Some((first, entries));
        }
        let second = usize::try_from(index & ((1 << l2_bits) - 1)).unwrap_or(usize::MAX);
        let entries = self.l2.as_ref().map(|(_, entries)| entries.as_slice());
        let entry = entries.and_then(|entries| entries.get(second)).copied().unwrap_or(0);
        self.entry(entry)
    }

    fn entry(&self, entry: u64) -> io::Result<Place> {
        if entry & COMPRESSED != 0 {
            let bits = 62 - (self.cluster_bits - 8);
            let offset = entry & ((1 << bits) - 1);
            let sectors = (entry & (COMPRESSED - 1)) >> bits;
            let end = (offset & !511) + (sectors + 1) * 512;
            // The last sector of the file may be incomplete.
            let end = end.min(self.storage.length());
            if offset >= end {
                return Err(bad("a compressed cluster is past its end"));
            }
            return Ok(Place::Packed { offset, length: end - offset });
        }
        let offset = entry & OFFSET;
        match (self.version >= 3 && entry & ZERO != 0, offset) {
            (true, _) | (false, 0) => Ok(Place::Zeros),
            (false, offset) if !offset.is_multiple_of(self.cluster()) => {
                Err(bad("one of its clusters is not aligned"))
            }
            (false, offset) => Ok(Place::Plain(offset)),
        }
    }

    /// Reads plain clusters at position `self.at`, as long as they are adjacent in the file.
    fn plain(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let within = self.at % self.cluster();
        let wanted = (out.len() as u64).min(self.size - self.at);
        let mut length = self.cluster() - within;
        let mut index = self.at >> self.cluster_bits;
        while length < wanted {
            index += 1;
            match self.place(index) {
                Ok(Place::Plain(next)) if next == offset + within + length => {}
                // An error in the next cluster is reported when that cluster is read.
                _ => break,
            }
            length += self.cluster();
        }
        let length = length.min(wanted);
        let start = offset + within;
        if start.checked_add(length).is_none_or(|end| end > self.storage.length()) {
            return Err(bad("it is truncated: a cluster is past its end"));
        }
        let count = usize::try_from(length).unwrap_or(0);
        self.storage.read_at(start, &mut out[..count], Part::Data)?;
        Ok(count)
    }

    fn packed(&mut self, offset: u64, length: u64, out: &mut [u8]) -> io::Result<usize> {
        let index = self.at >> self.cluster_bits;
        if self.decoded.as_ref().is_none_or(|(known, _)| *known != index) {
            let mut packed = vec![0; usize::try_from(length).unwrap_or(0)];
            self.storage.read_at(offset, &mut packed, Part::Data)?;
            let size = usize::try_from(self.cluster()).unwrap_or(0);
            let plain = if self.zstd { unzstd(&packed, size) } else { inflate(&packed, size) };
            self.decoded = Some((index, plain?));
        }
        let cluster = self.decoded.as_ref().map(|(_, bytes)| bytes.as_slice()).unwrap_or_default();
        let within = usize::try_from(self.at % self.cluster()).unwrap_or(0);
        let left = usize::try_from(self.size - self.at).unwrap_or(usize::MAX);
        let count = out.len().min(cluster.len() - within).min(left);
        out[..count].copy_from_slice(&cluster[within..within + count]);
        Ok(count)
    }
}

impl<S: Storage> Read for Disk<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.size || out.is_empty() {
            return Ok(0);
        }
        let count = match self.place(self.at >> self.cluster_bits)? {
            Place::Plain(offset) => self.plain(offset, out)?,
            Place::Packed { offset, length } => self.packed(offset, length, out)?,
            Place::Zeros => {
                let cluster = self.cluster() - self.at % self.cluster();
                let left = cluster.min(self.size - self.at);
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
                out[..count].fill(0);
                count
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

/// Checks the header for unsupported features. Returns true for zstd, false for deflate.
fn check<S: Storage>(header: &[u8], version: u32, storage: &mut S) -> io::Result<bool> {
    if !header.starts_with(b"QFI\xfb") || !(2..=3).contains(&version) {
        return Err(bad(format!("qcow version {version} is not supported: use 2 or 3")));
    }
    let (name_at, name_length) = (word(header, 8), half(header, 16));
    if name_at != 0 {
        let mut name = vec![0; usize::try_from(name_length).unwrap_or(0).min(1023)];
        if name_at.checked_add(name.len() as u64).is_some_and(|end| end <= storage.length()) {
            storage.read_at(name_at, &mut name, Part::Table)?;
        }
        let name = String::from_utf8_lossy(&name).into_owned();
        return Err(bad(format!(
            "it needs the backing file {name:?}; combine both files with qemu-img convert"
        )));
    }
    if half(header, 32) != 0 {
        return Err(bad("it is encrypted"));
    }
    let features = if version >= 3 { word(header, 72) } else { 0 };
    let known = DIRTY | CORRUPT | DATA_FILE | COMPRESSION_TYPE | SUBCLUSTERS;
    match features {
        _ if features & CORRUPT != 0 => Err(bad("it is marked as corrupt; see qemu-img check")),
        _ if features & DATA_FILE != 0 => Err(bad("its data is in another file")),
        _ if features & SUBCLUSTERS != 0 => Err(bad("it uses subclusters (unsupported)")),
        _ if features & !known != 0 => Err(bad("it uses a feature newer than this agent")),
        _ if features & COMPRESSION_TYPE == 0 => Ok(false),
        _ => match header[104] {
            0 => Ok(false),
            1 => Ok(true),
            kind => Err(bad(format!("its compression type {kind} is not supported"))),
        },
    }
}

fn table<S: Storage>(storage: &mut S, offset: u64, entries: u64) -> io::Result<Vec<u64>> {
    let length = entries * 8;
    if offset.checked_add(length).is_none_or(|end| end > storage.length()) {
        return Err(bad("it is truncated: a table is past its end"));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    storage.read_at(offset, &mut bytes, Part::Table)?;
    Ok(bytes.chunks_exact(8).map(|entry| word(entry, 0)).collect())
}

/// Decodes one cluster of `size` bytes, a raw deflate stream. Bytes after the stream are padding.
fn inflate(packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    let mut decoder = Decompress::new(false);
    let status = decoder.decompress_vec(packed, &mut out, FlushDecompress::Finish);
    match status {
        Ok(Status::StreamEnd | Status::Ok | Status::BufError) if out.len() == size => Ok(out),
        Ok(_) => Err(bad("a compressed cluster has the wrong length")),
        Err(error) => Err(bad(format!("a compressed cluster cannot be read: {error}"))),
    }
}

fn unzstd(packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0; size];
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?.single_frame();
    decoder.read_exact(&mut out)?;
    Ok(out)
}
