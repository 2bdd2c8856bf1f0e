//! Rights that the supervisor keeps: as firmware, and as a guest on another system.
//!
//! The supervisor is one process, not several. A thread with fewer rights is not a barrier: a fault
//! that writes to memory reaches the stacks of the other threads. A second process for DHCP and
//! TFTP would use 9 MiB of resident memory before it serves a request, as process 1 does
//! (development build). The budget is 40 MiB. A second process also needs a copy of the index, and
//! a protocol whose parser would be exposed in the same way. The parsers forbid unsafe code.
//! Instead, the whole process gives up the rights that a fault in a parser could use.

use std::path::{Path, PathBuf};

use config::{Config, SystemKind};
use platform::confinement::{self, FIRMWARE, GUEST, Limits, State};
use platform::init::{BOOT, CACHE, STATE};

/// Writable folders of firmware: its volumes, and folders in memory.
const WRITTEN: [&str; 5] = [STATE, CACHE, BOOT, "/run", "/tmp"];
/// Device folders: panel, LEDs and GPIO, the partition of the other slot, bonds.
const DEVICES: [&str; 3] = ["/dev", "/sys/class", "/sys/devices"];
/// Dynamic loaders, by processor and C library. A guest needs a loader to execute its own program
/// again after a restore.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// Gives up every right except the rights in `limits`, and logs the rights that remain.
pub fn enter(state: &Path, config: Option<&Config>, system_kind: SystemKind) {
    let limits = limits(state, config, system_kind);
    for folder in &limits.writable {
        // A rule needs a folder that exists. Later steps report a folder that cannot be made.
        let _ = std::fs::create_dir_all(folder);
    }
    for error in confinement::enter(&limits) {
        let error = stdx::chain(&error);
        tracing::warn!(error, "the supervisor has privileges that it does not need");
    }
    tracing::info!("the supervisor has {}", State::read());
}

fn limits(state: &Path, config: Option<&Config>, system_kind: SystemKind) -> Limits {
    if system_kind == SystemKind::Firmware {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let (writable, devices) = (paths(&WRITTEN), paths(&DEVICES));
        return Limits { capabilities: FIRMWARE, writable, devices, programs: Vec::new() };
    }
    let mut writable = vec![state.to_owned(), std::env::temp_dir()];
    if let Some(config) = config {
        writable.push(config.boot.artifacts.clone());
        writable.extend(config.images.as_ref().map(|images| images.cache.clone()));
    }
    let own = std::env::current_exe().ok();
    let programs = own.into_iter().chain(LOADERS.map(PathBuf::from)).collect();
    let devices = vec!["/dev/null".into(), "/dev/tty".into()];
    Limits { capabilities: GUEST, writable, devices, programs }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use config::{Config, Images, SystemKind};

    use super::limits;

    #[test]
    fn a_guest_writes_to_what_its_configuration_names() {
        let mut config = Config::untold();
        config.boot.artifacts = "/srv/artifacts".into();
        config.images = Some(Images::in_folder(Path::new("/srv/cache")));
        let limits = limits(Path::new("/var/lib/tinbox"), Some(&config), SystemKind::Guest);
        let expected = ["/var/lib/tinbox".into(), std::env::temp_dir(), "/srv/artifacts".into(), {
            PathBuf::from("/srv/cache/images")
        }];
        assert_eq!(limits.writable, expected);
        assert!(!limits.capabilities.contains(platform::confinement::FIRMWARE));
    }

    #[test]
    fn firmware_starts_no_program() {
        let limits = limits(Path::new("/state/tinbox"), None, SystemKind::Firmware);
        assert!(limits.programs.is_empty());
        assert!(limits.writable.iter().all(|path| path != Path::new("/")));
    }
}
