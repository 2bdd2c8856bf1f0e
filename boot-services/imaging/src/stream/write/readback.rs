//! Reads the written disk back and compares it with the decoded image.

use sha2::{Digest as _, Sha256};

use super::target::BUFFER;
use crate::disks::disk::{Aligned, Disk};
use crate::{Error, Meter};

/// SHA-256 of each 4 MiB buffer of the image, in order.
#[derive(Debug, Default)]
pub(in crate::stream) struct Sums {
    whole: Vec<[u8; 32]>,
    hash: Sha256,
    /// Number of bytes that `hash` covers.
    hashed: usize,
}

impl Sums {
    /// Adds the next bytes of the image, of any length.
    pub(in crate::stream) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER - self.hashed));
            self.hash.update(now);
            self.hashed += now.len();
            if self.hashed == BUFFER {
                self.whole.push(self.hash.finalize_reset().into());
                self.hashed = 0;
            }
            bytes = later;
        }
    }

    /// Returns all checksums. Must be called after the last byte.
    pub(in crate::stream) fn finish(mut self) -> Vec<[u8; 32]> {
        if self.hashed > 0 {
            self.whole.push(self.hash.finalize().into());
        }
        self.whole
    }
}

/// Compares the disk's first `length` bytes with `sums`; direct I/O on a device. Blocks.
pub(in crate::stream) fn compare(
    disk: &Disk,
    sums: &[[u8; 32]],
    length: u64,
    url: &str,
    meter: &Meter,
) -> Result<(), Error> {
    let mut buffer = Aligned::new(BUFFER);
    meter.set_total(length);
    let mut offset = 0;
    for sum in sums {
        if meter.is_stopped() {
            return Err(Error::Stopped);
        }
        let count = usize::try_from(length - offset).unwrap_or(BUFFER).min(BUFFER);
        let whole = count.next_multiple_of(disk.sector()).min(BUFFER);
        // A regular file gets its final length after this step.
        let wanted = if disk.size().is_some() { whole } else { count };
        let at = stdx::bytes(offset);
        let doing = format!("read back {} at {at}", disk.path().display());
        disk.read(&mut buffer.bytes_mut()[..wanted], offset).map_err(Error::io(doing))?;
        let read: [u8; 32] = Sha256::digest(&buffer.bytes()[..count]).into();
        if read != *sum {
            let (url, disk) = (url.to_owned(), disk.path().to_owned());
            return Err(Error::ReadBack { url, disk, offset });
        }
        offset += count as u64;
        meter.set_done(offset);
    }
    Ok(())
}
