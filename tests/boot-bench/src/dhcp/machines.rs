//! Machines of a run: their network, their pool and their reservations.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context as _, Result};
use stdx::MacAddr;

/// First and last address of the pool.
pub const POOL: (Ipv4Addr, Ipv4Addr) =
    (Ipv4Addr::new(10, 88, 1, 0), Ipv4Addr::new(10, 88, 250, 255));
/// Network of all addresses of a run.
pub const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 0);
pub const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 248, 0, 0);
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 3);
pub const TIME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 4);
pub const DOMAIN: &str = "bench.example";
pub const LEASE_SECS: u32 = 3600;
/// First address with a reservation.
const RESERVED: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 0);
/// File in a run's folder with a line `mac address` for each reservation.
const RESERVATIONS: &str = "reservations";
/// File in a run's folder with only the MAC addresses, one a line, for perfdhcp.
const HARDWARE: &str = "hardware";

/// Returns the MAC address and the reserved address of the machine with this number.
pub fn reserved(number: u32) -> (MacAddr, Ipv4Addr) {
    let [_, a, b, c] = number.to_be_bytes();
    let address = Ipv4Addr::from_bits(RESERVED.to_bits() + number);
    (MacAddr([0x02, 0x77, 0, a, b, c]), address)
}

/// Writes the files for this number of reservations.
///
/// # Errors
/// The files cannot be written.
pub fn write(folder: &Path, count: u32) -> Result<()> {
    let (mut both, mut alone) = (String::new(), String::new());
    for (mac, address) in (0..count).map(reserved) {
        writeln!(both, "{mac} {address}")?;
        writeln!(alone, "{mac}")?;
    }
    fs::write(folder.join(RESERVATIONS), both).context("cannot write the reservations")?;
    fs::write(folder.join(HARDWARE), alone).context("cannot write the hardware addresses")
}

/// Path of the file that lists the machines for perfdhcp.
pub fn hardware(folder: &Path) -> std::path::PathBuf {
    folder.join(HARDWARE)
}

/// Reads the reservations again.
///
/// # Errors
/// The file is missing or malformed.
pub fn read(folder: &Path) -> Result<Vec<(MacAddr, Ipv4Addr)>> {
    let text = fs::read_to_string(folder.join(RESERVATIONS)).context("cannot read reservations")?;
    let line = |line: &str| {
        let (mac, address) = line.split_once(' ')?;
        Some((mac.parse().ok()?, address.parse().ok()?))
    };
    text.lines().map(|text| line(text).with_context(|| format!("a reservation: {text}"))).collect()
}
