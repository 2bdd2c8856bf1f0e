//! Stock programs on the rack's network: other DHCP servers, and a relay to the box.

mod dnsmasq;
mod kea;
mod relay;

use std::fs;
use std::path::Path;

use stdx::testing::PATIENCE;

use crate::{BoxProcess, Error, children, poll};

pub use dnsmasq::Dnsmasq;
pub use kea::start as start_kea;
pub use relay::Relay;

/// Addresses that a DHCP server assigns, all of one /24.
#[derive(Debug, Clone, Copy)]
pub struct Pool {
    /// First address of the range, included.
    pub first: std::net::Ipv4Addr,
    /// Last address of the range, included.
    pub last: std::net::Ipv4Addr,
}

/// Waits until a program's log contains `words`.
fn wait_for_log(process: &mut BoxProcess, what: &str, words: &str) -> Result<(), Error> {
    let log = process.log().to_owned();
    let said = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.contains(words));
    let ready = poll(&format!("{what} to be ready"), PATIENCE, || {
        if said(&log) {
            return Some(true);
        }
        (!process.is_running()).then_some(false)
    })?;
    if ready {
        return Ok(());
    }
    let outcome = format!("it ended at once: {}", children::tail(&log));
    Err(Error::Command { command: what.to_owned(), outcome })
}
