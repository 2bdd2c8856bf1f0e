//! Switch with Power over Ethernet: Debian's `snmpd` with the ports of the crate `poe-sim`.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use poe_sim::{PoePorts, Port};
use tempfile::TempDir;

use crate::{Process, find, loopback_address};

/// Maximum time from the start of snmpd until it listens.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Standard port of SNMP (RFC 3417).
const PORT: u16 = 161;

/// A running switch, ended when dropped.
pub struct PoeSwitch {
    /// Ports of the switch.
    pub ports: PoePorts,
    process: Process,
    folder: TempDir,
    address: Ipv4Addr,
}

impl PoeSwitch {
    /// Starts a switch on a loopback address of its own, and waits until snmpd listens.
    ///
    /// # Errors
    /// snmpd is missing, or does not start.
    pub fn start(ports: Vec<Port>) -> Result<Self> {
        find("snmpd", "snmpd")?;
        let folder = TempDir::with_prefix("poe-")?;
        let ports = PoePorts::serve(folder.path(), ports, Box::new(|_| ()))?;
        let address = loopback_address()?;
        let process = launch(&ports, &folder, address)?;
        Ok(Self { ports, process, folder, address })
    }

    /// Address of the switch; the port is the standard one of SNMP.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Ends snmpd, as a switch without power.
    pub fn stop(&mut self) {
        self.process.kill();
    }

    /// Ends snmpd, and starts it again. The switch counts its starts (`snmpEngineBoots`).
    ///
    /// # Errors
    /// snmpd does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        self.process = launch(&self.ports, &self.folder, self.address)?;
        Ok(())
    }

    /// Starts another switch at the same address, with another engine ID.
    ///
    /// # Errors
    /// snmpd does not start.
    pub fn replace(&mut self) -> Result<()> {
        self.stop();
        std::fs::remove_dir_all(self.ports.store()).context("cannot remove the store of snmpd")?;
        self.restart()
    }

    /// Runs a program of net-snmp with the right user, such as `snmpget` with an object, and
    /// returns the value without its name.
    ///
    /// # Errors
    /// The program is missing, or fails.
    pub fn net_snmp(&self, program: &str, words: &[&str]) -> Result<String> {
        let mut command = Command::new(find(program, "snmp")?);
        command
            .env("MIBS", "")
            .env("SNMP_PERSISTENT_DIR", self.folder.path().join("client"))
            .args(["-v3", "-l", "authPriv", "-u", PoePorts::USER, "-a", "SHA-256", "-x", "AES"])
            .args(["-A", PoePorts::PASSWORD, "-X", PoePorts::PRIVACY, "-Oqv"])
            .arg(self.address.to_string())
            .args(words);
        let output = command.output().with_context(|| format!("cannot run {program}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if !output.status.success() {
            bail!("{program} failed: {}", text(&output.stderr));
        }
        Ok(text(&output.stdout))
    }
}

fn launch(ports: &PoePorts, folder: &TempDir, address: Ipv4Addr) -> Result<Process> {
    let command = ports.command((address, PORT).into(), PoePorts::PRIVACY)?;
    let (program, arguments) = command.split_first().context("a command without a program")?;
    let program = PathBuf::from(program);
    let log = folder.path().join("snmpd.log");
    let mut process = Process::start(&program, arguments, &log)?;
    let id = process.id();
    process.wait_until("snmpd to listen", START_LIMIT, || listens(id, address))?;
    Ok(process)
}

/// True when a UDP socket is bound to `address`, port 161 (`/proc/PID/net/udp`: the address as
/// hexadecimal in memory order, a colon, the port).
fn listens(process: u32, address: Ipv4Addr) -> bool {
    let table = std::fs::read_to_string(format!("/proc/{process}/net/udp")).unwrap_or_default();
    let wanted = format!("{:08X}:{PORT:04X}", u32::from_le_bytes(address.octets()));
    table.lines().any(|line| line.split_whitespace().nth(1) == Some(wanted.as_str()))
}
