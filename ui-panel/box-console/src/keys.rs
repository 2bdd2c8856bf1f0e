//! Reads keys of the box's input devices, also of devices that are plugged in later.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use panel::buttons::{Decoder, KeyChange, devices_with};
use tokio::sync::mpsc;

/// Interval of searches for devices.
const LOOK: Duration = Duration::from_secs(5);
/// Maximum number of queued key changes. Further changes are lost, and the reader receives `Lost`.
pub const CHANGES_MAX: usize = 64;

/// Filter of the keys and devices to read.
#[derive(Debug, Clone)]
pub struct KeyFilter {
    /// Sysfs folder of input devices: `/sys/class/input`.
    pub sys: PathBuf,
    /// Folder of device nodes: `/dev/input`.
    pub dev: PathBuf,
    /// Key codes. A device with at least one of these keys is read, with all its keys.
    pub codes: Vec<u16>,
    /// Kernel name of the device; `None` for any device.
    pub device: Option<String>,
}

impl KeyFilter {
    /// Creates a filter with the folders of this machine.
    pub fn here(codes: Vec<u16>, device: Option<String>) -> Self {
        let (sys, dev) = ("/sys/class/input".into(), "/dev/input".into());
        Self { sys, dev, codes, device }
    }

    fn devices(&self) -> Vec<PathBuf> {
        let mut found = devices_with(&self.sys, &self.codes);
        found.retain(|name| {
            let called = || std::fs::read_to_string(self.sys.join(name).join("device/name"));
            let is_it = |wanted: &String| called().is_ok_and(|called| called.trim() == wanted);
            self.device.as_ref().is_none_or(is_it)
        });
        found
    }
}

/// Sends key changes until the receiver is dropped. Sends `Lost` after a device was removed,
/// because its pressed keys may have been released.
pub async fn follow(wanted: KeyFilter, changes: mpsc::Sender<(KeyChange, Instant)>) {
    let mut read: HashMap<PathBuf, JoinHandle<()>> = HashMap::new();
    let mut logged: HashMap<PathBuf, String> = HashMap::new();
    let mut looks = tokio::time::interval(LOOK);
    while !changes.is_closed() {
        looks.tick().await;
        read.retain(|_, reader| !reader.is_finished());
        for name in wanted.devices() {
            if read.contains_key(&name) {
                continue;
            }
            let (path, to) = (wanted.dev.join(&name), changes.clone());
            // One thread for each device: reads block, and end with the device or with this
            // process.
            match File::open(&path) {
                Ok(device) => {
                    logged.remove(&name);
                    read.insert(name, std::thread::spawn(move || listen(device, &path, &to)));
                }
                Err(error) => {
                    let (reason, path) = (error.to_string(), path.display());
                    if logged.insert(name, reason.clone()).as_ref() != Some(&reason) {
                        tracing::warn!(%path, reason, "cannot read an input device; trying again");
                    }
                }
            }
        }
    }
}

fn listen(mut device: File, path: &Path, to: &mpsc::Sender<(KeyChange, Instant)>) {
    let (mut decoder, mut bytes) = (Decoder::default(), [0; 1024]);
    while let Ok(count @ 1..) = device.read(&mut bytes) {
        let changes = decoder.feed(&bytes[..count]);
        let all = changes.into_iter().all(|change| to.try_send((change, Instant::now())).is_ok());
        // A lost release would leave its key pressed. This thread may wait until the queue has
        // space.
        if !all && to.blocking_send((KeyChange::Lost, Instant::now())).is_err() {
            return;
        }
        if to.is_closed() {
            return;
        }
    }
    tracing::debug!(path = %path.display(), "an input device was removed");
    // After `Lost`, a device of the same name is another device.
    drop(device);
    let _ = to.blocking_send((KeyChange::Lost, Instant::now()));
}

#[cfg(test)]
mod tests;
