//! Copies an image to a disk in one pass: writes the ranges of its block map, checks every
//! checksum, and reads all ranges back.
//!
//! The head of the disk, with its partition table, is written last, after all other ranges were
//! read back. Therefore a disk with an incomplete image does not boot.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use sha2::{Digest as _, Sha256};

use crate::map::{Map, Part};

/// Size of the head in bytes; the head is written last.
const HEAD: u64 = 1 << 20;
/// Size of one copy step, in bytes.
const PIECE: usize = 1 << 20;
/// Bytes between two flushes, so that progress means the disk, not the page cache.
const FLUSH: u64 = 64 << 20;

/// Reason why the disk has an incomplete image.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The image cannot be read or unpacked.
    #[error("the image is damaged or cannot be read: {0}")]
    Image(io::Error),
    /// The checksum of the image's range at this byte differs from the block map.
    #[error("the image is damaged at byte {0}: its checksum differs from its block map")]
    Sum(u64),
    /// The image is larger than the disk.
    #[error("the image is larger than the disk")]
    TooLarge,
    /// The disk fails to write or read at this byte.
    #[error("the disk fails at byte {0}: {1}")]
    Disk(u64, io::Error),
    /// The disk returns other bytes than were written.
    #[error("the disk returned other data at byte {0} than was written there")]
    Differs(u64),
    /// A person interrupted the copy.
    #[error("the copy was interrupted")]
    Stopped,
}

#[derive(Debug)]
pub struct Writer<'a> {
    /// Disk, opened exclusively for reading and writing.
    pub disk: &'a File,
    /// Size of the disk in bytes.
    pub size: u64,
    /// Flag that interrupts the copy if it is true.
    pub stop: &'a AtomicBool,
}

impl Writer<'_> {
    /// Discards the former content of the disk. Returns false if the disk cannot discard, or does
    /// not return zeros afterwards: old bytes stay where the image has no data.
    pub fn discard(&self) -> bool {
        let zeros = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(self.disk, zeros, 0, self.size).is_ok()
    }

    /// Writes and flushes the ranges of `image` that `map` lists. Returns the written ranges with
    /// their checksums, and the head, which is not written yet.
    ///
    /// # Errors
    /// The copy fails; the disk holds an incomplete image.
    pub fn write(&self, image: &mut impl Read, map: &Map) -> Result<(Map, Vec<u8>), Failure> {
        let head = usize::try_from(HEAD.min(self.size)).unwrap_or_default();
        let mut head = vec![0; head];
        self.put(&head, 0)?;
        self.disk.sync_data().map_err(|error| Failure::Disk(0, error))?;
        let (mut at, mut parts, mut unflushed) = (0, Vec::new(), 0);
        let mut piece = vec![0; PIECE];
        for part in &map.parts {
            let (mut sum, begin) = (Sha256::new(), part.bytes.start);
            while at < part.bytes.end {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Failure::Stopped);
                }
                let until = if at < begin { begin } else { part.bytes.end };
                let most = usize::try_from(until - at).unwrap_or(PIECE).min(PIECE);
                let count = image.read(&mut piece[..most]).map_err(Failure::Image)?;
                if count == 0 {
                    break;
                }
                if at >= begin {
                    sum.update(&piece[..count]);
                    self.place(&mut head, &piece[..count], at)?;
                    unflushed += count as u64;
                }
                at += count as u64;
                if unflushed >= FLUSH {
                    self.disk.sync_data().map_err(|error| Failure::Disk(at, error))?;
                    unflushed = 0;
                }
            }
            let found: [u8; 32] = sum.finalize().into();
            if part.sum.is_some_and(|wanted| wanted != found) {
                return Err(Failure::Sum(begin));
            }
            parts.push(Part { bytes: begin..at.max(begin), sum: Some(found) });
        }
        // Reads the rest of the file too: its checksum covers the whole file.
        while image.read(&mut piece).map_err(Failure::Image)? > 0 {}
        self.disk.sync_all().map_err(|error| Failure::Disk(at, error))?;
        Ok((Map { size: Some(at), parts }, head))
    }

    /// Writes the head, which makes the disk bootable, reads it back, and erases it if it differs.
    ///
    /// # Errors
    /// The disk fails to write, or returns other bytes.
    pub fn finish(&self, head: &[u8]) -> Result<(), Failure> {
        let failed = |error| Failure::Disk(0, error);
        self.put(head, 0)?;
        self.disk.sync_all().map_err(failed)?;
        self.forget_pages();
        let mut found = vec![0; head.len()];
        let read = self.disk.read_exact_at(&mut found, 0).map_err(failed);
        let same = read.and_then(|()| match found == head {
            true => Ok(()),
            false => Err(Failure::Differs(0)),
        });
        if same.is_err() {
            self.put(&vec![0; head.len()], 0)?;
            self.disk.sync_all().map_err(failed)?;
        }
        same
    }

    /// Drops the kernel's page cache of the disk, so that reads reach the disk.
    fn forget_pages(&self) {
        let _ = fadvise(self.disk, 0, None, Advice::DontNeed);
    }

    /// Reads the written ranges back from the disk, except the head, and reports progress.
    ///
    /// # Errors
    /// The disk returns other bytes than were written.
    pub fn compare(
        &self,
        written: &Map,
        head: &[u8],
        mut tell: impl FnMut(u64),
    ) -> Result<(), Failure> {
        self.forget_pages();
        let mut piece = vec![0; PIECE];
        for part in &written.parts {
            let (mut sum, mut at) = (Sha256::new(), part.bytes.start);
            while at < part.bytes.end {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Failure::Stopped);
                }
                let most = usize::try_from(part.bytes.end - at).unwrap_or(PIECE).min(PIECE);
                match usize::try_from(at).ok().and_then(|at| head.get(at..)) {
                    Some(kept) if !kept.is_empty() => {
                        let count = kept.len().min(most);
                        sum.update(&kept[..count]);
                        at += count as u64;
                    }
                    _ => {
                        let read = self.disk.read_exact_at(&mut piece[..most], at);
                        read.map_err(|error| Failure::Disk(at, error))?;
                        sum.update(&piece[..most]);
                        at += most as u64;
                    }
                }
                tell(at);
            }
            let found: [u8; 32] = sum.finalize().into();
            if part.sum != Some(found) {
                return Err(Failure::Differs(part.bytes.start));
            }
        }
        Ok(())
    }

    /// Writes `bytes`, whose offset on the disk is `at`. Bytes within the head are only copied to
    /// `head`, because the head is written last.
    fn place(&self, head: &mut [u8], bytes: &[u8], at: u64) -> Result<(), Failure> {
        let kept = usize::try_from(at).ok().and_then(|at| head.get_mut(at..));
        let early = kept.map_or(0, |kept| {
            let count = kept.len().min(bytes.len());
            kept[..count].copy_from_slice(&bytes[..count]);
            count
        });
        self.put(&bytes[early..], at + early as u64)
    }

    fn put(&self, bytes: &[u8], at: u64) -> Result<(), Failure> {
        if at + bytes.len() as u64 > self.size {
            return Err(Failure::TooLarge);
        }
        self.disk.write_all_at(bytes, at).map_err(|error| Failure::Disk(at, error))
    }
}

#[cfg(test)]
mod tests;
