//! Loopback addresses for servers with fixed ports: 127.0.0.0/8 has one for each server.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

/// Ports for [`loopback_port`]: below the ports that Linux chooses for clients.
const PORTS: Range<u32> = 20_000..30_000;
/// Distance between the first ports of two processes with consecutive IDs.
const PORTS_PER_PROCESS: u32 = 32;
/// Maximum number of ports that are tried.
const PORTS_TRIED_MAX: usize = 100;

/// Random address of the loopback network; the chance of a collision is one in millions.
///
/// # Errors
/// The machine provides no random numbers.
pub fn loopback_address() -> Result<Ipv4Addr> {
    let mut random = [0; 3];
    getrandom::fill(&mut random).ok().context("the machine has no random numbers")?;
    let [a, b, c] = random;
    // Outside of 127.0.0.0/16, which people use by hand, and without a 0 or 255 as the last byte.
    Ok(Ipv4Addr::new(127, 16 | (a & 0x6f), b, c.clamp(1, 254)))
}

/// Returns a port that no program uses on any address, for servers that listen on all addresses.
/// Each call returns another port. The process ID decides where the search begins, because parallel
/// tests are processes.
///
/// # Errors
/// No port is free.
pub fn loopback_port() -> Result<u16> {
    static RETURNED: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(PORTS_PER_PROCESS);
    for _ in 0..PORTS_TRIED_MAX {
        let at = begin.wrapping_add(RETURNED.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + at % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).context("the port is too large")?;
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("found no free port after {PORTS_TRIED_MAX} attempts")
}
