//! `disk-wipe`: erases the whole BLOCK_DEVICE, by WIPE_METHOD.
//!
//! `zero` (default): the device zeros each range itself if it can; otherwise zeros are written.
//! `discard`: the device discards all blocks. Both methods leave areas that no read command
//! reaches, such as spare blocks. Commands of the device erase these areas too: `nvme-format`,
//! `nvme-sanitize`, `ata-secure-erase`. `auto` is the strongest command that the device has, else
//! `zero`.
//!
//! After the erase, samples of the whole disk are read with direct I/O. A sample with old data
//! fails the action. The action's message is the erase record.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use imaging::Meter;
use imaging::StopOnDrop;
use imaging::disk::{Accept, Aligned, Disk};
use imaging::erase::{self, EraseOperation, Method, samples};
use imaging::select::describe;
use imaging::stream::blocking;

use super::environment::Environment;
use crate::Error;

/// Bytes of one zeroing or discard command, small enough to report progress and to stop.
const PUNCH: u64 = 1 << 30;
/// Bytes of one write of zeros.
const WRITE: u64 = 4 << 20;

/// Disk to erase, and the erase method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskWipe {
    device: PathBuf,
    method: Method,
}

impl DiskWipe {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        let named = environment.optional("WIPE_METHOD").unwrap_or("zero");
        let method = Method::ALL.iter().find(|(_, name)| *name == named).map(|(method, _)| *method);
        let method = method.ok_or_else(|| {
            let names: Vec<_> = Method::ALL.iter().map(|(_, name)| *name).collect();
            environment.bad("WIPE_METHOD", format!("{named:?} is not one of {}", names.join(", ")))
        })?;
        Ok(Self { device: environment.device("BLOCK_DEVICE")?, method })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, imaging::Error> {
        let _stop = StopOnDrop(meter.clone());
        meter.say(format!("wiping {}", self.device.display()));
        let meter = meter.clone();
        blocking("wiping the disk", move || self.wipe(&meter)).await
    }

    fn wipe(&self, meter: &Meter) -> Result<String, imaging::Error> {
        // No command goes to a disk before it is known to be unused and not to be preserved.
        let disk = Disk::open(&self.device, Accept::BlockDevices)?;
        let (size, began) = (disk.size().unwrap_or(0), Instant::now());
        meter.set_total(size);
        let (device, mut handle) = match self.method {
            Method::Zero | Method::Discard => (erase::Device::Other("a disk"), erase::Handle::None),
            Method::Auto => erase::look(disk.path()).unwrap_or_else(|error| {
                let reason = stdx::chain(&error);
                tracing::warn!(disk = %disk.path().display(), reason, "no controller");
                let what = "a disk whose controller does not respond";
                (erase::Device::Other(what), erase::Handle::None)
            }),
            _ => erase::look(disk.path())?,
        };
        let (way, why) = erase::decide(self.method, &device)
            .map_err(|reason| imaging::Error::Erase { path: disk.path().to_owned(), reason })?;
        let known = known_as(&disk);
        tracing::info!(disk = %disk.path().display(), known, way = way.words(), "erasing");
        let (how, before) = match way {
            EraseOperation::Zero => (zero(&disk, size, meter)?, None),
            EraseOperation::Discard => (discard(&disk, size, meter)?, None),
            _ => {
                let before = samples::before(&disk, size, meter)?;
                meter.say(format!("wiping {} by {}", disk.path().display(), way.words()));
                erase::carry_out(way, &mut handle, disk.path(), meter)?;
                (way.words(), Some(before))
            }
        };
        disk.flush().map_err(imaging::Error::io(format!("flush {}", disk.path().display())))?;
        meter.set_done(size);
        meter.say(format!("verifying {}", disk.path().display()));
        let after = samples::after(&disk, size, before.as_ref(), way.method(), meter)?;
        let (path, method) = (disk.path().display().to_string(), self.shown(way, why));
        disk.finish(size)?;
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (bytes, took) = (stdx::bytes(size), stdx::seconds(millis));
        Ok(format!(
            "wiped {bytes} of {path}{known} ({how}); method {method}, {size} bytes in {took}, \
             {after}"
        ))
    }

    /// Returns the text for the record: the method; for `auto`, also the selected method and the
    /// reason.
    fn shown(&self, way: EraseOperation, why: Option<String>) -> String {
        let reason = why.map(|why| format!(", because {why}")).unwrap_or_default();
        match self.method {
            Method::Auto => format!("auto: {}{reason}", way.method()),
            _ => way.method().to_owned(),
        }
    }
}

/// Calls `step` with each offset up to `size`. `step` returns the number of processed bytes.
fn along(
    disk: &Disk,
    size: u64,
    meter: &Meter,
    mut step: impl FnMut(u64) -> std::io::Result<u64>,
) -> Result<(), imaging::Error> {
    let mut at = 0;
    while at < size {
        if meter.is_stopped() {
            return Err(imaging::Error::Stopped);
        }
        let doing = || format!("wipe {} at {}", disk.path().display(), stdx::bytes(at));
        at += step(at).map_err(|source| imaging::Error::Io { doing: doing(), source })?;
        meter.set_done(at);
    }
    Ok(())
}

fn zero(disk: &Disk, size: u64, meter: &Meter) -> Result<&'static str, imaging::Error> {
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

fn discard(disk: &Disk, size: u64, meter: &Meter) -> Result<&'static str, imaging::Error> {
    along(disk, size, meter, |at| {
        let count = PUNCH.min(size - at);
        disk.discard(at, count).map(|()| count)
    })?;
    Ok("discarded by the device")
}

/// Returns `, model …, serial …, wwn …`, without values that the disk does not report.
fn known_as(disk: &Disk) -> String {
    let real = disk.path().canonicalize().unwrap_or_else(|_| disk.path().to_owned());
    let folder =
        std::path::Path::new("/sys/class/block").join(real.file_name().unwrap_or_default());
    let Some(known) = describe(&folder) else { return String::new() };
    let named = [("model", known.model), ("serial", known.serial), ("wwn", known.wwn)];
    let shown = named.into_iter().filter(|(_, value)| !value.is_empty());
    shown.map(|(name, value)| format!(", {name} {value}")).collect()
}
