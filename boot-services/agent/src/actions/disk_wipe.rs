//! `disk-wipe`: BLOCK_DEVICE, every byte of it. A device that can zero a range by itself does so;
//! to any other the zeros are written.

use std::path::PathBuf;
use std::sync::Arc;

use super::environment::Environment;
use crate::disk::{Accept, Aligned, Disk};
use crate::stream::blocking;
use crate::{Error, Meter};

/// One command to a device that zeroes ranges: small enough to see progress and to stop.
const PUNCH: u64 = 1 << 30;
/// One write of zeros.
const WRITE: u64 = 4 << 20;

/// A disk to be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskWipe {
    device: PathBuf,
}

impl DiskWipe {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        Ok(Self { device: environment.device("BLOCK_DEVICE")? })
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
        let zeros = Aligned::new(usize::try_from(WRITE).unwrap_or(1 << 20));
        let mut punched = 0;
        let mut at = 0;
        while at < size {
            if meter.is_stopped() {
                return Err(Error::Stopped);
            }
            let failed = || {
                let doing = format!("wipe {} at {}", self.device.display(), stdx::bytes(at));
                Error::io(doing)
            };
            let count = PUNCH.min(size - at);
            if disk.punch(at, count).map_err(failed())? {
                punched += count;
                at += count;
            } else {
                let count = WRITE.min(size - at);
                let data = &zeros.bytes()[..usize::try_from(count).unwrap_or(0)];
                disk.write(data, at).map_err(failed())?;
                at += count;
            }
            meter.set_done(at);
        }
        disk.finish(size)?;
        let how = if punched == size { "zeroed by the device" } else { "zeros written" };
        Ok(format!("wiped {} of {} ({how})", stdx::bytes(size), self.device.display()))
    }
}
