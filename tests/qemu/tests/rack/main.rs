//! Tests of the harness with real QEMU, real `ipmi_sim`, real `ipmitool` and real firmware.

mod boot;
mod cable;
mod lifetime;
mod power;
mod segment;
mod wake;

use std::time::Duration;

/// Timeout far above the time that a loaded machine needs; only a failure waits this long.
const LONG: Duration = Duration::from_secs(120);

/// Configuration of a rack whose logs go to `out/rack-NAME`.
fn config(name: &str) -> qemu::RackConfig {
    qemu::RackConfig::new(&format!("rack-{name}"))
}
