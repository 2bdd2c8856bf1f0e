//! The servers, each with the same network, pool and reservations, its leases on a disk.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use peers::find;

use super::machines::{
    self, DOMAIN, LEASE_SECS, NAME_SERVER, NETMASK, NETWORK, POOL, TIME_SERVER, reserved,
};
use super::wire::{INTERFACE, PREFIX_LENGTH, SERVER, Wire};
use crate::server::Server;

/// DHCP server under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contestant {
    /// Baseline: the stateless reflector.
    Floor,
    Tinbox,
    Kea,
    Isc,
    Dnsmasq,
}

/// A server that is ready.
pub struct Started {
    pub server: Server,
    /// Time from the start of the server to its first ACK.
    pub first_ack: Duration,
}

impl Contestant {
    pub fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Tinbox => "tinbox",
            Self::Kea => "kea",
            Self::Isc => "isc dhcpd",
            Self::Dnsmasq => "dnsmasq",
        }
    }

    /// Starts the server with this number of reservations, with its files in the empty `folder`,
    /// and waits for its first ACK.
    ///
    /// # Errors
    /// The server's program is missing, or the server does not answer.
    pub fn start(self, wire: &Wire, folder: &Path, reservations: u32) -> Result<Started> {
        machines::write(folder, reservations)?;
        let me = std::env::current_exe()?.display().to_string();
        let mut asking = wire.client(&me);
        let mut asking = asking.arg("first-ack").stderr(Stdio::null()).spawn()?;
        let begun = Instant::now();
        let server = self.spawn(&me, folder, reservations);
        if server.is_err() {
            let _ = asking.kill();
        }
        let ended = asking.wait()?;
        let first_ack = begun.elapsed();
        let server = server?;
        let log = folder.join(format!("{}.log", self.name()));
        let words = || fs::read_to_string(&log).unwrap_or_default();
        ensure!(ended.success(), "{} gave no first ACK; it said: {}", self.name(), words());
        Ok(Started { server, first_ack })
    }

    fn spawn(self, me: &str, folder: &Path, reservations: u32) -> Result<Server> {
        let home = folder.display().to_string();
        let start = |program, words: &[&str]| Server::start(self.name(), program, words, folder);
        match self {
            Self::Floor => start((me, ""), &["reflect"]),
            Self::Tinbox => start((me, ""), &["served-dhcp", &home]),
            Self::Kea => {
                fs::write(folder.join("kea.json"), kea(folder, reservations)?)?;
                let program = find("kea-dhcp4", "kea-dhcp4-server")?.display().to_string();
                // By default Kea writes to folders that only an installed package has.
                let pid = format!("KEA_PIDFILE_DIR={home}");
                let lock = "KEA_LOCKFILE_DIR=none";
                let config = format!("{home}/kea.json");
                start(("env", "coreutils"), &[&pid, lock, &program, "-c", &config])
            }
            Self::Isc => {
                fs::write(folder.join("dhcpd.conf"), isc(reservations)?)?;
                fs::write(folder.join("dhcpd.leases"), "")?;
                let [config, leases, pid] =
                    ["dhcpd.conf", "dhcpd.leases", "pid"].map(|name| format!("{home}/{name}"));
                let files = ["-cf", &config, "-lf", &leases, "-pf", &pid];
                let words = ["-4", "-f", "-q", "-user", "root", "-group", "root", INTERFACE];
                start(("dhcpd", "isc-dhcp-server"), &[&files[..], &words[..]].concat())
            }
            Self::Dnsmasq => {
                fs::write(folder.join("dnsmasq.conf"), dnsmasq(folder, reservations)?)?;
                let config = format!("--conf-file={home}/dnsmasq.conf");
                start(("dnsmasq", "dnsmasq-base"), &["--keep-in-foreground", &config])
            }
        }
    }
}

fn kea(folder: &Path, reservations: u32) -> Result<String> {
    let folder = folder.display();
    let mut machines = String::new();
    for number in 0..reservations {
        let (mac, address) = reserved(number);
        let comma = if number == 0 { "" } else { "," };
        write!(machines, r#"{comma}{{"hw-address":"{mac}","ip-address":"{address}"}}"#)?;
    }
    let (first, last) = POOL;
    Ok(format!(
        r#"{{"Dhcp4": {{
  "interfaces-config": {{"interfaces": ["{INTERFACE}"], "dhcp-socket-type": "udp"}},
  "lease-database": {{"type": "memfile", "persist": true, "name": "{folder}/leases.csv",
    "lfc-interval": 0}},
  "valid-lifetime": {LEASE_SECS},
  "multi-threading": {{"enable-multi-threading": false}},
  "option-data": [
    {{"name": "routers", "data": "{SERVER}"}},
    {{"name": "domain-name-servers", "data": "{NAME_SERVER}"}},
    {{"name": "ntp-servers", "data": "{TIME_SERVER}"}},
    {{"name": "domain-name", "data": "{DOMAIN}"}}
  ],
  "subnet4": [{{"subnet": "{NETWORK}/{PREFIX_LENGTH}", "pools": [{{"pool": "{first}-{last}"}}],
    "reservations": [{machines}]}}],
  "loggers": [{{"name": "kea-dhcp4", "severity": "ERROR",
    "output_options": [{{"output": "stderr"}}]}}]
}}}}"#
    ))
}

fn isc(reservations: u32) -> Result<String> {
    let (first, last) = POOL;
    let mut text = format!(
        "authoritative;\nddns-update-style none;\nping-check false;\n\
         default-lease-time {LEASE_SECS};\nmax-lease-time {LEASE_SECS};\n\
         option routers {SERVER};\noption domain-name-servers {NAME_SERVER};\n\
         option ntp-servers {TIME_SERVER};\noption domain-name \"{DOMAIN}\";\n\
         subnet {NETWORK} netmask {NETMASK} {{ range {first} {last}; }}\n"
    );
    for number in 0..reservations {
        let (mac, address) = reserved(number);
        writeln!(text, "host h{number} {{ hardware ethernet {mac}; fixed-address {address}; }}")?;
    }
    Ok(text)
}

fn dnsmasq(folder: &Path, reservations: u32) -> Result<String> {
    let folder = folder.display();
    let (first, last) = POOL;
    let mut text = format!(
        "port=0\nuser=root\npid-file=\ninterface={INTERFACE}\nbind-interfaces\nno-ping\n\
         quiet-dhcp\ndhcp-authoritative\ndhcp-leasefile={folder}/leases\ndhcp-lease-max=200000\n\
         dhcp-range={first},{last},{NETMASK},{LEASE_SECS}\ndhcp-option=3,{SERVER}\n\
         dhcp-option=6,{NAME_SERVER}\ndhcp-option=42,{TIME_SERVER}\ndhcp-option=15,{DOMAIN}\n"
    );
    for (mac, address) in (0..reservations).map(reserved) {
        writeln!(text, "dhcp-host={mac},{address}")?;
    }
    Ok(text)
}
