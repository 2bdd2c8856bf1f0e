//! Another machine on the rack's network: a DHCP server, a relay, or a client.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::process::Command;

use stdx::MacAddr;

use crate::namespace::Namespace;
use crate::{BoxProcess, BoxProgram, Error, children, leftovers};

use crate::config::Segment;

/// Maximum length of a name: with `-v` and a number, the name of the network interface has at most
/// 15 characters (`IFNAMSIZ`).
const MAX_NAME: usize = 10;
/// All segments are /24.
const PREFIX: u8 = 24;

/// A network namespace with a cable (`eth0`, `eth1` …) to each of its segments. It is removed with
/// its rack.
#[derive(Debug)]
pub struct Host {
    rack: Namespace,
    namespace: Namespace,
    ports: Vec<String>,
}

impl Host {
    pub(crate) fn build(
        rack: &str,
        name: &str,
        legs: &[(Segment, Ipv4Addr)],
    ) -> Result<Self, Error> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(good) {
            return Err(Error::Config(format!("`{name}` cannot be the name of a host")));
        }
        let namespace = leftovers::host_namespace(rack, name);
        let rack = leftovers::rack_namespace(rack);
        namespace.create()?;
        let mut inside = "link set lo up\n".to_owned();
        let mut ports = Vec::new();
        for (number, (segment, address)) in legs.iter().enumerate() {
            let port = format!("{name}-v{number}");
            rack.ip(&format!(
                "link add {port} type veth peer name eth{number} netns {}\n\
                 link set {port} master {} up\n",
                namespace.name(),
                segment.bridge(),
            ))?;
            inside += &format!(
                "address add {address}/{PREFIX} dev eth{number}\n\
                 link set eth{number} up\n"
            );
            ports.push(port);
        }
        namespace.ip(&inside)?;
        for number in 0..legs.len() {
            complete_checksums(&namespace, &format!("eth{number}"))?;
        }
        Ok(Self { rack, namespace, ports })
    }

    /// A command that runs `program` on this host.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.namespace.command(program)
    }

    /// Starts a program on this host. The program is killed when the harness ends.
    ///
    /// # Errors
    /// The program does not start.
    pub fn spawn(&self, program: BoxProgram) -> Result<BoxProcess, Error> {
        BoxProcess::start(program, self.namespace.clone())
    }

    /// Runs `work` on a thread on this host: network connections that `work` opens start from here.
    ///
    /// # Errors
    /// The host's namespace cannot be entered.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        self.namespace.enter(work)
    }

    /// Runs iproute2 commands, one per line, on this host.
    ///
    /// # Errors
    /// The error of `ip`.
    pub fn ip(&self, batch: &str) -> Result<(), Error> {
        self.namespace.ip(batch)
    }

    /// Sets the MAC address of the host's interface `port`, such as `eth0`.
    ///
    /// # Errors
    /// The error of `ip`.
    pub fn set_mac(&self, port: &str, mac: MacAddr) -> Result<(), Error> {
        let set = |words: &str| format!("link set {port} {words}\n");
        self.ip(&(set("down") + &set(&format!("address {mac}")) + &set("up")))
    }

    /// Unplugs the host's network cables. The programs on the host keep running without a network.
    ///
    /// # Errors
    /// The error of `ip`.
    pub fn unplug(&self) -> Result<(), Error> {
        self.cables("down")
    }

    /// Plugs the host's network cables in again.
    ///
    /// # Errors
    /// The error of `ip`.
    pub fn plug(&self) -> Result<(), Error> {
        self.cables("up")
    }

    fn cables(&self, state: &str) -> Result<(), Error> {
        let lines = self.ports.iter().map(|port| format!("link set {port} {state}\n"));
        self.rack.ip(&lines.collect::<String>())
    }
}

/// Disables checksum offload of `interface`. With offload, a veth sends UDP packets with incomplete
/// checksums, which no hardware completes here. Firmware may drop such packets.
pub fn complete_checksums(namespace: &Namespace, interface: &str) -> Result<(), Error> {
    let mut ethtool = namespace.command("ethtool");
    ethtool.args(["-K", interface, "tx", "off"]);
    children::run(ethtool, "").map(drop)
}
