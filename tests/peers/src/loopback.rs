//! Loopback addresses for servers with fixed ports: 127.0.0.0/8 has one for each server.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

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
