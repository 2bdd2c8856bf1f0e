//! Addresses of this machine for servers with fixed ports: 127.0.0.0/8 has one for each.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

/// An address of the loopback network that nothing else uses, by chance of one in millions.
///
/// # Errors
/// The machine has no random numbers.
pub fn loopback_address() -> Result<Ipv4Addr> {
    let mut random = [0; 3];
    getrandom::fill(&mut random).ok().context("the machine has no random numbers")?;
    let [a, b, c] = random;
    // Away from 127.0.0.0/16, which people use by hand, and from names with a 0 or 255 at the end.
    Ok(Ipv4Addr::new(127, 16 | (a & 0x6f), b, c.clamp(1, 254)))
}
