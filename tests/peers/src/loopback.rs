//! Loopback addresses for servers with fixed ports: 127.0.0.0/8 has one for each server.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};

/// Ports for [`loopback_port`]: below the ports that Linux chooses for clients.
const PORTS: (u16, u16) = (20_000, 30_000);
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

/// Random port that no program uses on any address, for servers that listen on all addresses.
///
/// # Errors
/// The machine provides no random numbers, or has no free port.
pub fn loopback_port() -> Result<u16> {
    let (first, end) = PORTS;
    for _ in 0..PORTS_TRIED_MAX {
        let mut random = [0; 2];
        getrandom::fill(&mut random).ok().context("the machine has no random numbers")?;
        let port = first + u16::from_ne_bytes(random) % (end - first);
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("found no free port after {PORTS_TRIED_MAX} attempts")
}
