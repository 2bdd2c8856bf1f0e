//! A switch with Power over Ethernet at `10.77.0.(100+N)`, whose only port with a device powers
//! NUC N: Debian's `snmpd` with the ports of the crate `poe-sim`, one process each.

use std::fmt;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use poe_sim::{PoePorts, Port};
use stdx::testing::PATIENCE;

use crate::namespace::Namespace;
use crate::{Error, Nuc, bmc, children, poll};

/// Standard UDP port of SNMP (RFC 3417).
const PORT: u16 = 161;
/// Ports of the switch.
const PORTS: u32 = 4;

/// A running switch, killed when dropped.
pub struct PoeSwitch {
    child: Child,
    _ports: PoePorts,
}

impl fmt::Debug for PoeSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PoeSwitch")
    }
}

impl PoeSwitch {
    /// Starts the switch of a NUC inside the rack's namespace, and waits until it listens. Its
    /// configuration goes to `work`, its log to `out`.
    pub fn start(nuc: &Arc<Nuc>, rack: &Namespace, work: &Path, out: &Path) -> Result<Self, Error> {
        let number = nuc.number();
        let dir = work.join(format!("bmc{number}"));
        fs::create_dir_all(&dir).map_err(Error::path("create", &dir))?;
        let ports = (1..=PORTS).map(|index| Port {
            id: (1, index),
            has_device: (1, index) == PoePorts::PORT,
            interface: Some((format!("gi0/{index}"), format!("nuc{number}-port{index}"))),
            ..Port::default()
        });
        let config = |error| Error::Config(format!("make a switch: {error:#}"));
        let powered = Arc::clone(nuc);
        let ports = PoePorts::serve(
            &dir,
            ports.collect(),
            Box::new(move |port| {
                if port.id == PoePorts::PORT {
                    power(&powered, port.is_on);
                }
            }),
        );
        let ports = ports.map_err(config)?;
        let address = SocketAddr::from((nuc.bmc().address, PORT));
        let words = ports.command(address, nuc.bmc().password.expose()).map_err(config)?;
        let log = out.join(format!("nuc{number}.bmc.log"));
        let output = File::create(&log).map_err(Error::path("create", &log))?;
        let errors = output.try_clone().map_err(Error::path("clone", &log))?;
        let (program, arguments) =
            words.split_first().ok_or_else(|| Error::Config("no command of snmpd".to_owned()))?;
        let mut command = rack.command(program);
        command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = children::spawn(command).map_err(Error::io("start snmpd"))?;
        let mut switch = Self { child, _ports: ports };
        poll(&format!("snmpd at {address}"), PATIENCE, || {
            let ended = !matches!(switch.child.try_wait(), Ok(None));
            let listens = bmc::listens(switch.child.id(), nuc.bmc().address, PORT);
            (ended || listens).then_some(!ended)
        })?
        .then_some(())
        .ok_or_else(|| Error::Command {
            command: "snmpd".to_owned(),
            outcome: format!("it ended at once: {}", children::tail(&log)),
        })?;
        Ok(switch)
    }
}

impl Drop for PoeSwitch {
    fn drop(&mut self) {
        children::end(&mut self.child);
    }
}

/// Gives power to the NUC, whose firmware then starts it, or takes the power away.
fn power(nuc: &Nuc, is_on: bool) {
    let done = if is_on { nuc.bmc_power_on() } else { nuc.bmc_power_off() };
    if let Err(error) = done {
        // The log of the power events has no such event then, which fails the test.
        eprintln!("nuc{}: {}", nuc.number(), stdx::chain(&error));
    }
}
