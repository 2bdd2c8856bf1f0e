//! A server under test, ours or a peer's, pinned to one core, with its CPU time measured.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use peers::{Process, find};

use crate::cgroup::Cgroup;

/// CPU core of the servers.
pub const SERVER_CORE: &str = "0";
/// CPU core of the clients.
pub const CLIENT_CORE: &str = "1";
/// Listen address of every server here.
pub const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const START_LIMIT: Duration = Duration::from_secs(10);

/// A running server in a cgroup of its own.
pub struct Server {
    pub name: &'static str,
    /// Dropped first: a cgroup can be removed only when it is empty.
    process: Process,
    cgroup: Cgroup,
}

impl Server {
    /// Starts a program of a Debian package, with its output in the file `NAME.log` of `folder`.
    ///
    /// # Errors
    /// The program is missing, or cannot be started.
    pub fn start(
        name: &'static str,
        (program, package): (&str, &str),
        arguments: &[&str],
        folder: &Path,
    ) -> Result<Self> {
        let program =
            if program.starts_with('/') { program.into() } else { find(program, package)? };
        let cgroup = Cgroup::new()?;
        // The shell joins the group and execs the server, so that all its CPU time is counted.
        let join = "echo $$ >\"$0\"; exec taskset -c \"$@\"";
        let door = cgroup.door();
        let mut words: Vec<String> = ["-c", join].into_iter().map(ToOwned::to_owned).collect();
        words.extend([door.display().to_string(), SERVER_CORE.to_owned()]);
        words.push(program.display().to_string());
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        let log = folder.join(format!("{name}.log"));
        let process = Process::start(&find("sh", "dash")?, &words, &log)?;
        Ok(Self { name, process, cgroup })
    }

    /// Waits until a process listens on a TCP or UDP port of loopback.
    ///
    /// # Errors
    /// No process listens in time.
    pub fn wait_for(&mut self, protocol: &str, port: u16) -> Result<()> {
        let what = format!("{} on {protocol} port {port}", self.name);
        let table = format!("/proc/net/{protocol}");
        // The kernel's list has the port in upper-case hexadecimal digits.
        let listening = || {
            let text = fs::read_to_string(&table).unwrap_or_default();
            text.lines().filter_map(|line| line.split_whitespace().nth(1)).any(|local| {
                local.split_once(':').is_some_and(|(_, hex)| hex == format!("{port:04X}"))
            })
        };
        self.process.wait_until(&what, START_LIMIT, listening)
    }

    /// Resident memory in bytes, with shared pages.
    ///
    /// # Errors
    /// The process has ended.
    pub fn resident(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let words = line.context("the process has no memory")?;
        let kib: u64 = words.trim_end_matches("kB").trim().parse()?;
        Ok(kib << 10)
    }

    /// CPU time spent so far.
    ///
    /// # Errors
    /// See [`Cgroup::used`].
    pub fn cpu(&self) -> Result<Duration> {
        self.cgroup.used()
    }
}

/// A client's socket: each client has an address of its own, as real machines have.
///
/// # Errors
/// The address cannot be bound.
pub fn client_socket(number: usize) -> Result<UdpSocket> {
    let [_, second, third, last] = u32::try_from(number)?.to_be_bytes();
    let address = SocketAddr::from(([127, 1 + second, third, last], 0));
    UdpSocket::bind(address).with_context(|| format!("cannot bind {address}"))
}
