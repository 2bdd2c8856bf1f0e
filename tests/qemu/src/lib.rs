//! Virtual rack: QEMU machines with real firmware, simulated BMCs and a network, all on one
//! computer.
//!
//! A [`Rack`] is two network namespaces (the box's and the rack's), a bridge, and any number of
//! NUCs. A NUC is a QEMU machine (no KVM needed). It is *off*, which means that no QEMU process
//! exists, until its BMC (one `ipmi_sim` process each) receives a power-on command. The box under
//! test runs as an ordinary process inside the box's namespace, with the network view of a box in a
//! real rack. Other machines ([`Host`]) can be added: DHCP servers, rogue ones included, and a
//! [`Relay`] to a second segment.
//!
//! ```no_run
//! # fn main() -> Result<(), qemu::Error> {
//! use std::time::Duration;
//! let rack = qemu::Rack::build(qemu::RackConfig::new("example").nuc(qemu::NucConfig::bios()))?;
//! rack.ipmitool(1, &["chassis", "bootdev", "pxe"])?;
//! rack.ipmitool(1, &["chassis", "power", "on"])?;
//! rack.nuc(1).serial().wait_for("iPXE", Duration::from_secs(60))?;
//! rack.succeed(); // without this line the logs and a screenshot of every NUC stay in `dir`
//! # Ok(())
//! # }
//! ```
//!
//! Never: touch a namespace, process or file that this crate did not create; contain code about the
//! product (the scenarios contain it); use a sleep as synchronization. Enter at [`Rack::build`],
//! then [`Nuc`] for one machine and [`BoxProcess`] for the box as a process; at [`Board`] for the
//! box as a machine of its own.

mod amt;
mod bmc;
mod board;
mod box_process;
mod capture;
mod chassis;
mod children;
mod config;
mod console_process;
mod dhcp;
mod error;
mod host;
mod impairment;
mod leftovers;
mod machine;
mod namespace;
mod nuc;
mod peer;
mod plain_pxe;
mod poe;
mod power;
mod preflight;
mod proc;
mod qmp;
mod rack;
mod redfish;
mod serial;
mod splice;
mod tpm;
mod vlan_port;
mod volatile;
mod wake;
mod webhook;

pub use bmc::BmcAccess;
pub use board::{Board, Bus, Drive};
pub use box_process::{BoxProcess, BoxProgram};
pub use capture::{Capture, Datagram, read_datagrams};
pub use chassis::ask as ask_chassis;
pub use config::{
    BmcKind, BootOrder, BootPath, Firmware, Model, Nic, NucConfig, RackConfig, Segment, out_dir,
};
pub use console_process::ConsoleProcess;
pub use dhcp::{Kind as DhcpKind, Message as DhcpMessage};
pub use error::{Error, Missing};
pub use host::Host;
pub use impairment::Direction;
pub use leftovers::{remove as remove_rack, sweep as sweep_leftovers};
pub use nuc::Nuc;
pub use peer::{Dnsmasq, Pool, Relay, start_kea};
pub use power::{Action, BootDevice, Origin, PowerEvent};
pub use preflight::preflight;
pub use rack::{BOX_ADDRESS, Rack};
pub use serial::{Line, Mark, Serial};
pub use vlan_port::VlanTraffic;
pub use volatile::{Lost, write_again};

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval between two probes of [`poll`].
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Calls `probe` until it returns a value, for at most `within`. The error message contains `what`,
/// the name of the awaited condition.
///
/// # Errors
/// [`Error::Deadline`] when `probe` returned no value in time.
pub fn poll<T>(
    what: &str,
    within: Duration,
    mut probe: impl FnMut() -> Option<T>,
) -> Result<T, Error> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = probe() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(Error::Deadline {
                what: what.to_owned(),
                after: within,
                seen: String::new(),
            });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Locks `mutex` even after a panic of a thread that held the lock: the cleanup must still end all
/// processes.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
