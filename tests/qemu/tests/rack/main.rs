//! The harness proves itself: real QEMU, real `ipmi_sim`, real `ipmitool`, real firmware.

mod boot;
mod cable;
mod lifetime;
mod power;
mod segment;

use std::time::Duration;

/// Far above what a loaded machine needs; only a failure waits this long.
const LONG: Duration = Duration::from_secs(120);

/// Where this binary's racks log.
fn config(name: &str) -> qemu::RackConfig {
    qemu::RackConfig::new(&format!("rack-{name}"))
}
