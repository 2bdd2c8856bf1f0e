//! Samples of a disk, read with direct I/O before and after an erase.
//!
//! After zeroing or a discard, samples must be zeros. After an erase command, samples may be zeros,
//! ones, or other bytes than before (data decrypted with a new key), but not the old bytes.

use sha2::{Digest as _, Sha256};

use crate::disks::disk::{Aligned, Disk, MEMORY_ALIGN};
use crate::{Error, Meter};

/// Number of samples; the first and the last bytes of the disk are always among them.
const SAMPLES: u64 = 256;
/// Length of one sample, in bytes.
const SAMPLE: usize = 64 << 10;

/// SHA-256 of each sample before an erase; `None` if not readable.
#[derive(Debug, Default)]
pub struct Before(Vec<Option<[u8; 32]>>);

/// Numbers of samples after an erase, by content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct After {
    zeros: u64,
    ones: u64,
    unlike: u64,
    unknown: u64,
}

/// Format: sentence for the wipe record.
impl std::fmt::Display for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { zeros, ones, unlike, unknown } = *self;
        let all = zeros + ones + unlike + unknown;
        write!(f, "{all} samples of 64 KiB read back as ")?;
        if zeros == all {
            return f.write_str("zeros");
        }
        let named = [
            (zeros, "zeros"),
            (ones, "ones"),
            (unlike, "other bytes than before"),
            (unknown, "bytes that were not readable before"),
        ];
        let counts = named.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, what)| format!("{what} ({count})")).collect();
        f.write_str(&counts.join(", "))
    }
}

/// Reads the samples before an erase command. Stops at the first read error, because a locked disk
/// fails everywhere.
pub fn before(disk: &Disk, size: u64, meter: &Meter) -> Result<Before, Error> {
    let mut known = Vec::new();
    each(disk, size, meter, |_, bytes| {
        let sum = bytes.ok().map(|bytes| Sha256::digest(bytes).into());
        let go_on = sum.is_some();
        known.push(sum);
        Ok(go_on)
    })?;
    Ok(Before(known))
}

/// Reads and checks the samples after an erase. Without `before`, all samples must be zeros.
///
/// # Errors
/// [`Error::NotErased`]: a sample still has data; has the offset of the first. [`Error::Io`].
pub fn after(
    disk: &Disk,
    size: u64,
    before: Option<&Before>,
    method: &'static str,
    meter: &Meter,
) -> Result<After, Error> {
    let mut after = After::default();
    let mut index = 0;
    each(disk, size, meter, |offset, bytes| {
        let doing = || format!("read {} at {}", disk.path().display(), stdx::bytes(offset));
        let bytes = bytes.map_err(|source| Error::Io { doing: doing(), source })?;
        let known = before.map(|before| before.0.get(index).copied().flatten());
        index += 1;
        if after.count(bytes, known) {
            return Ok(true);
        }
        Err(Error::NotErased { path: disk.path().to_owned(), method, offset })
    })?;
    Ok(after)
}

impl After {
    /// Counts a sample. Returns true if the sample is erased. `known`: `None` if it must be zeros,
    /// else the SHA-256 before the erase, `Some(None)` if it was not readable.
    fn count(&mut self, bytes: &[u8], known: Option<Option<[u8; 32]>>) -> bool {
        let all = |wanted: u8| bytes.iter().all(|byte| *byte == wanted);
        let counter = match known {
            _ if all(0) => &mut self.zeros,
            None => return false,
            _ if all(0xff) => &mut self.ones,
            Some(None) => &mut self.unknown,
            Some(Some(sum)) if sum[..] != Sha256::digest(bytes)[..] => &mut self.unlike,
            Some(Some(_)) => return false,
        };
        *counter += 1;
        true
    }
}

/// Calls `with` with offset and content of each sample, until `with` returns false.
fn each(
    disk: &Disk,
    size: u64,
    meter: &Meter,
    mut with: impl FnMut(u64, std::io::Result<&[u8]>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut buffer = Aligned::new(SAMPLE);
    for offset in offsets(size) {
        if meter.is_stopped() {
            return Err(Error::Stopped);
        }
        let count = usize::try_from(size - offset).unwrap_or(SAMPLE).min(SAMPLE);
        let bytes = &mut buffer.bytes_mut()[..count];
        let read = disk.read(bytes, offset).map(|()| &*bytes);
        if !with(offset, read)? {
            break;
        }
    }
    Ok(())
}

/// Returns the samples' offsets: evenly spaced, 4096-aligned; the last covers the disk's end.
fn offsets(size: u64) -> impl Iterator<Item = u64> {
    let block = MEMORY_ALIGN as u64;
    let last = size.saturating_sub(SAMPLE as u64).next_multiple_of(block).min(size);
    let step = (last / SAMPLES).next_multiple_of(block).max(SAMPLE as u64);
    let before = (0..SAMPLES).map(move |index| index * step).take_while(move |at| *at < last);
    before.chain((last < size).then_some(last))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::{After, SAMPLE, offsets};

    #[test]
    fn samples_are_all_over_and_at_both_ends() {
        for size in [512, 65_536, 65_537 * 512, 48 << 20, (48 << 20) + 512, 4 << 40] {
            let all: Vec<_> = offsets(size).collect();
            assert_eq!(all[0], 0, "{size}");
            let end = all[all.len() - 1] + SAMPLE as u64;
            assert!(end >= size, "{size}: the end at {end}");
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{size}: {all:?}");
            assert!(all.iter().all(|at| at % 4096 == 0) && all.len() <= 257, "{size}");
            let widest = all.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(widest <= (size / 128).max(1 << 17), "{size}: a gap of {widest}");
        }
    }

    #[test]
    fn only_zeros_or_a_devices_own_leavings_are_erased() {
        let sum = |bytes: &[u8]| Some(Some(Sha256::digest(bytes).into()));
        let (old, zeros, ones) = ([7; 512], [0; 512], [0xff; 512]);
        let mut after = After::default();
        assert!(after.count(&zeros, None) && !after.count(&ones, None));
        assert_eq!(after.to_string(), "1 samples of 64 KiB read back as zeros");
        assert!(!after.count(&old, sum(&old)), "it is as it was");
        assert!(after.count(&zeros, sum(&zeros)) && after.count(&ones, sum(&ones)));
        assert!(after.count(&[9; 512], sum(&old)) && after.count(&old, Some(None)));
        assert_eq!(
            after.to_string(),
            "5 samples of 64 KiB read back as zeros (2), ones (1), other bytes than before (1), \
             bytes that were not readable before (1)"
        );
    }
}
