//! `disk-wipe`: BLOCK_DEVICE, every byte of it, and WIPE_METHOD.
//!
//! `zero`, the default: a device that can zero a range by itself does so; to any other the zeros
//! are written. `discard`: the device is told to forget everything. Afterwards samples from all
//! over the disk are read past the page cache, and one that is not zeros is a failure. The message
//! is the record of the erase. What a device keeps where nobody can read it, either leaves there:
//! its own erase commands (NVMe format and sanitize, ATA secure erase) are refused by name.

use std::path::PathBuf;
use std::sync::Arc;

use super::environment::Environment;
use crate::disk::{Accept, Aligned, Disk, MEMORY_ALIGN};
use crate::select::describe;
use crate::stream::blocking;
use crate::{Error, Meter};

/// One command to a device: small enough to see progress and to stop.
const PUNCH: u64 = 1 << 30;
/// One write of zeros.
const WRITE: u64 = 4 << 20;
/// Samples read afterwards, the first and the last bytes of the disk among them.
const SAMPLES: u64 = 256;
/// Bytes of a sample.
const SAMPLE: usize = 64 << 10;

/// A disk to be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskWipe {
    device: PathBuf,
    method: Method,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Zero,
    Discard,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Discard => "discard",
        }
    }
}

impl DiskWipe {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        let method = match environment.optional("WIPE_METHOD").unwrap_or("zero") {
            "zero" => Method::Zero,
            "discard" => Method::Discard,
            other @ ("nvme-format" | "nvme-sanitize" | "ata-secure-erase") => {
                let reason = format!("{other} is not built in yet; use zero or discard");
                return Err(environment.bad("WIPE_METHOD", reason));
            }
            other => {
                let reason = format!("{other:?} is neither zero nor discard");
                return Err(environment.bad("WIPE_METHOD", reason));
            }
        };
        Ok(Self { device: environment.device("BLOCK_DEVICE")?, method })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, Error> {
        struct Stop(Arc<Meter>);
        impl Drop for Stop {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        let _stop = Stop(meter.clone());
        meter.say(format!("wiping {}", self.device.display()));
        let meter = meter.clone();
        blocking("wiping the disk", move || self.wipe(&meter)).await
    }

    fn wipe(&self, meter: &Meter) -> Result<String, Error> {
        let disk = Disk::open(&self.device, Accept::BlockDevices)?;
        let size = disk.size().unwrap_or(0);
        meter.set_total(size);
        let how = match self.method {
            Method::Zero => zero(&disk, size, meter)?,
            Method::Discard => discard(&disk, size, meter)?,
        };
        disk.flush().map_err(Error::io(format!("flush {}", disk.path().display())))?;
        meter.say(format!("verifying {}", disk.path().display()));
        let samples = verify(&disk, size, self.method, meter)?;
        let (path, known) = (disk.path().display().to_string(), known_as(&disk));
        disk.finish(size)?;
        let (method, bytes) = (self.method.name(), stdx::bytes(size));
        Ok(format!(
            "wiped {bytes} of {path}{known} ({how}); method {method}, {size} bytes, {samples} \
             samples of 64 KiB read back as zeros"
        ))
    }
}

/// Do `step` to the whole disk, so much at a time as it says it did.
fn along(
    disk: &Disk,
    size: u64,
    meter: &Meter,
    mut step: impl FnMut(u64) -> std::io::Result<u64>,
) -> Result<(), Error> {
    let mut at = 0;
    while at < size {
        if meter.is_stopped() {
            return Err(Error::Stopped);
        }
        let doing = || format!("wipe {} at {}", disk.path().display(), stdx::bytes(at));
        at += step(at).map_err(|source| Error::Io { doing: doing(), source })?;
        meter.set_done(at);
    }
    Ok(())
}

fn zero(disk: &Disk, size: u64, meter: &Meter) -> Result<&'static str, Error> {
    let zeros = Aligned::new(usize::try_from(WRITE).unwrap_or(1 << 20));
    let mut punched = 0;
    along(disk, size, meter, |at| {
        let count = PUNCH.min(size - at);
        if disk.punch(at, count)? {
            punched += count;
            return Ok(count);
        }
        let count = WRITE.min(size - at);
        disk.write(&zeros.bytes()[..usize::try_from(count).unwrap_or(0)], at)?;
        Ok(count)
    })?;
    Ok(if punched == size { "zeroed by the device" } else { "zeros written" })
}

fn discard(disk: &Disk, size: u64, meter: &Meter) -> Result<&'static str, Error> {
    along(disk, size, meter, |at| {
        let count = PUNCH.min(size - at);
        disk.discard(at, count).map(|()| count)
    })?;
    Ok("discarded by the device")
}

/// Read samples all over the disk; how many.
fn verify(disk: &Disk, size: u64, method: Method, meter: &Meter) -> Result<u64, Error> {
    let mut buffer = Aligned::new(SAMPLE);
    let mut samples = 0;
    for offset in offsets(size) {
        if meter.is_stopped() {
            return Err(Error::Stopped);
        }
        let count = usize::try_from(size - offset).unwrap_or(SAMPLE).min(SAMPLE);
        let bytes = &mut buffer.bytes_mut()[..count];
        let doing = format!("read {} at {}", disk.path().display(), stdx::bytes(offset));
        disk.read(bytes, offset).map_err(Error::io(doing))?;
        if bytes.iter().any(|byte| *byte != 0) {
            let (path, method) = (disk.path().to_owned(), method.name());
            return Err(Error::NotErased { path, method, offset });
        }
        samples += 1;
    }
    Ok(samples)
}

/// Where the samples are: evenly apart, whole blocks, the last one at the very end.
fn offsets(size: u64) -> impl Iterator<Item = u64> {
    let block = MEMORY_ALIGN as u64;
    let last = size.saturating_sub(SAMPLE as u64).next_multiple_of(block).min(size);
    let step = (last / SAMPLES).next_multiple_of(block).max(SAMPLE as u64);
    let before = (0..SAMPLES).map(move |index| index * step).take_while(move |at| *at < last);
    before.chain((last < size).then_some(last))
}

/// `, model …, serial …`, as far as the disk says so.
fn known_as(disk: &Disk) -> String {
    let real = disk.path().canonicalize().unwrap_or_else(|_| disk.path().to_owned());
    let folder =
        std::path::Path::new("/sys/class/block").join(real.file_name().unwrap_or_default());
    let Some(known) = describe(&folder) else { return String::new() };
    let named = [("model", known.model), ("serial", known.serial), ("wwn", known.wwn)];
    let told = named.into_iter().filter(|(_, value)| !value.is_empty());
    told.map(|(name, value)| format!(", {name} {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE, offsets};

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
}
