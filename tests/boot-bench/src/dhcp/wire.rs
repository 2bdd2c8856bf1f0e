//! The link between the servers and perfdhcp: servers are in this network namespace, clients in
//! another.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::server::CLIENT_CORE;

/// Interface of the servers.
pub const INTERFACE: &str = "bench0";
/// Address of the servers.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
/// Address of perfdhcp, which acts as a relay agent.
pub const RELAY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// Interface of perfdhcp, the other end of the link.
const RELAY_INTERFACE: &str = "bench1";
/// Prefix length of the network, which contains all reservations and the pool.
pub const PREFIX_LENGTH: u8 = 13;
const CARRIER_LIMIT: Duration = Duration::from_secs(10);

/// The clients' namespace, removed with the link when dropped.
pub struct Wire {
    space: String,
}

impl Wire {
    /// Creates the link.
    ///
    /// # Errors
    /// This process is not root, or not in a namespace of its own.
    pub fn new() -> Result<Self> {
        let space = format!("tinbox-bench-{}", std::process::id());
        ip(&format!("netns add {space}"))?;
        let wire = Self { space };
        let space = &wire.space;
        let (ours, theirs) = (INTERFACE, RELAY_INTERFACE);
        ip(&format!("link add {ours} type veth peer name {theirs} netns {space}"))?;
        ip(&format!("address add {SERVER}/{PREFIX_LENGTH} dev {ours}"))?;
        ip(&format!("link set {ours} up"))?;
        ip(&format!("-n {space} address add {RELAY}/{PREFIX_LENGTH} dev {theirs}"))?;
        ip(&format!("-n {space} link set {theirs} up"))?;
        let up = || {
            let mut show = Command::new("ip");
            let output = show.args(["-oneline", "link", "show", ours, "up"]).output();
            output.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains(" state UP "))
        };
        peers::poll("the wire's carrier", CARRIER_LIMIT, up)?;
        Ok(wire)
    }

    /// Returns a command in the clients' namespace, on the clients' core.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space, "taskset", "-c", CLIENT_CORE, program]);
        command
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The interface is removed together with the namespace of its other end.
        if let Err(error) = ip(&format!("netns delete {}", self.space)) {
            eprintln!("{error:#}");
        }
    }
}

fn ip(line: &str) -> Result<()> {
    let done = Command::new("ip").args(line.split(' ')).status().context("cannot run ip")?;
    ensure!(done.success(), "`ip {line}` failed: run me as root in `unshare --net`");
    Ok(())
}
