//! An image onto a disk: what its map names, in one pass, with every sum; and read again.
//!
//! The beginning of the disk, with its partition table, is written last, when all else was read
//! again and is right: a disk with half an image, or a disk that fails, does not start.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use sha2::{Digest as _, Sha256};

use super::map::{Map, Part};

/// What is written last.
const HEAD: u64 = 1 << 20;
/// Bytes moved at once.
const PIECE: usize = 1 << 20;
/// Bytes after which the disk is waited for, so that progress is the disk's.
const FLUSH: u64 = 64 << 20;

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The image cannot be read or unpacked.
    #[error("the image is damaged or cannot be read: {0}")]
    Image(io::Error),
    /// It is not what its map says.
    #[error("the image is damaged at byte {0}: its sum is another than its block map says")]
    Sum(u64),
    /// It is larger than the disk.
    #[error("the image is larger than the disk")]
    TooLarge,
    /// The disk does not take it or give it back.
    #[error("the disk fails at byte {0}: {1}")]
    Disk(u64, io::Error),
    /// The disk has something else than was written.
    #[error("the disk gives back something else at byte {0} than was written there")]
    Differs(u64),
    /// A person ended it.
    #[error("it was stopped")]
    Stopped,
}

/// A disk that is written to.
#[derive(Debug)]
pub struct Writer<'a> {
    /// Open for reading and writing, by nobody else.
    pub disk: &'a File,
    /// Its bytes.
    pub size: u64,
    /// Set when somebody wants it to end.
    pub stop: &'a AtomicBool,
}

impl Writer<'_> {
    /// Discards all that the disk held. False when the disk does not discard, or does not promise
    /// zeros afterwards: former bytes stay where the image writes none.
    pub fn discard(&self) -> bool {
        let zeros = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(self.disk, zeros, 0, self.size).is_ok()
    }

    /// Writes what `map` names of `image`, and waits until the disk has it; what was written, with
    /// the sums, but for the beginning, which is the second.
    ///
    /// # Errors
    /// Why the disk holds no whole image now.
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
        // What follows the last part has to be whole as well: the file's sum is over it.
        while image.read(&mut piece).map_err(Failure::Image)? > 0 {}
        self.disk.sync_all().map_err(|error| Failure::Disk(at, error))?;
        Ok((Map { size: Some(at), parts }, head))
    }

    /// Writes the beginning, which makes the disk one that starts, and reads it again. A beginning
    /// that the disk does not keep is taken away.
    ///
    /// # Errors
    /// The disk does not take it, or has something else.
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

    /// The kernel's memory is not the disk.
    fn forget_pages(&self) {
        let _ = fadvise(self.disk, 0, None, Advice::DontNeed);
    }

    /// Reads what was written from the disk itself, but for the beginning that is still to be
    /// written, and tells how far it is.
    ///
    /// # Errors
    /// The disk has something else.
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

    /// `bytes`, which belong at `at`, to the disk, or to its beginning for later.
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
