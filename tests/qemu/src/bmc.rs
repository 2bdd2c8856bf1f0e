//! A NUC's BMC at `10.77.0.(100+N)`. For IPMI it is OpenIPMI's `ipmi_sim`, one process each, port
//! 623.
//!
//! `ipmi_sim` supports IPMI 2.0 with cipher suites 0 to 14, so 3 but not 17, and does not control
//! QEMU: for chassis commands `ipmi_sim` runs `rack-chassis`, which sends them to the rack.

use std::fs::{self, File};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;

use amt_sim::AmtSim;
use poe_sim::PoePorts;
use stdx::Secret;
use stdx::testing::PATIENCE;

use crate::amt::AmtEngine;
use crate::namespace::Namespace;
use crate::poe::PoeSwitch;
use crate::redfish::RedfishService;
use crate::webhook::Webhook;
use crate::{BmcKind, Error, Nuc, children, machine, poll};

/// RMCP's port (IPMI v2.0, 13.1.1).
const PORT: u16 = 623;
const USER: &str = "admin";
/// Random bytes of a password; sixteen hexadecimal digits fit IPMI 1.5's sixteen characters.
const PASSWORD_BYTES: usize = 8;

/// Address and credentials of a BMC.
#[derive(Debug, Clone)]
pub struct BmcAccess {
    /// Protocol of the BMC.
    pub kind: BmcKind,
    /// Address on the rack's network; the port is the standard one of the protocol, and
    /// [`BmcAccess::WEBHOOK_PORT`] for a webhook.
    pub address: Ipv4Addr,
    /// User name: `admin`, or that of [`PoePorts`] for a switch.
    pub user: String,
    /// Random password of the rack; the secret of the signatures for a webhook, and the password of
    /// the encryption for a switch.
    pub password: Secret,
}

impl BmcAccess {
    /// TCP port of the webhook.
    pub const WEBHOOK_PORT: u16 = 8090;

    pub(crate) fn new(kind: BmcKind, number: u8, password: &Secret) -> Self {
        // The simulated engine has one account.
        let password = match kind {
            BmcKind::Amt => Secret::from(AmtSim::PASSWORD),
            _ => password.clone(),
        };
        let user = if kind == BmcKind::Poe { PoePorts::USER } else { USER };
        Self { kind, address: address(number), user: user.to_owned(), password }
    }
}

/// Address of the BMC of NUC `number`.
pub fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, 100 + number)
}

/// Generates a password, the same for all BMCs of a rack.
pub fn password() -> Secret {
    Secret::from(stdx::random_hex(PASSWORD_BYTES))
}

/// A running BMC, ended when dropped.
#[derive(Debug)]
pub enum Bmc {
    /// NUC that has no BMC.
    None,
    /// OpenIPMI's simulator in a process.
    Ipmi { _process: IpmiProcess },
    /// HTTP server for signed requests.
    Webhook { _server: Webhook },
    /// Simulated management engine, in threads of this process.
    Amt { _engine: AmtEngine },
    /// OpenStack's emulator in a process.
    Redfish { _service: RedfishService },
    /// Switch that powers the NUC, by net-snmp in a process.
    Poe { _switch: PoeSwitch },
}

impl Bmc {
    /// Starts the BMC of a NUC. Configuration and state of a simulator go to `work`, its log to
    /// `out`.
    pub fn start(nuc: &Arc<Nuc>, rack: &Namespace, work: &Path, out: &Path) -> Result<Self, Error> {
        let access = nuc.bmc();
        Ok(match access.kind {
            BmcKind::WakeOnLan => Self::None,
            BmcKind::Ipmi => {
                Self::Ipmi { _process: IpmiProcess::start(nuc.number(), access, rack, work, out)? }
            }
            BmcKind::Webhook => Self::Webhook { _server: Webhook::start(nuc, rack)? },
            BmcKind::Amt => Self::Amt { _engine: AmtEngine::start(nuc, rack)? },
            BmcKind::Poe => Self::Poe { _switch: PoeSwitch::start(nuc, rack, work, out)? },
            BmcKind::Redfish => {
                let service = RedfishService::start(nuc.number(), access, rack, work, out)?;
                Self::Redfish { _service: service }
            }
        })
    }
}

/// A running `ipmi_sim`, killed when dropped.
#[derive(Debug)]
pub struct IpmiProcess {
    child: Child,
}

impl IpmiProcess {
    /// Starts the BMC of NUC `number` and waits until the BMC listens. Configuration and state go
    /// to `work`, the log goes to `out`. `work` must not contain spaces, because the command line
    /// of the chassis program contains this path.
    pub fn start(
        number: u8,
        access: &BmcAccess,
        rack: &Namespace,
        work: &Path,
        out: &Path,
    ) -> Result<Self, Error> {
        let dir = work.join(format!("bmc{number}"));
        let state = dir.join("state");
        fs::create_dir_all(&state).map_err(Error::path("create", &state))?;
        let lan = write(&dir, "lan.conf", &lan_conf(number, access, work))?;
        let commands = write(&dir, "commands.emu", COMMANDS)?;
        let log = out.join(format!("nuc{number}.bmc.log"));
        let output = File::create(&log).map_err(Error::path("create", &log))?;
        let errors = output.try_clone().map_err(Error::path("clone", &log))?;
        let mut command = rack.command("ipmi_sim");
        command.arg("-n").arg("-c").arg(lan).arg("-f").arg(commands).arg("-s").arg(state);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = children::spawn(command).map_err(Error::io("start ipmi_sim"))?;
        let mut bmc = Self { child };
        let address = access.address;
        poll(&format!("ipmi_sim at {address}:{PORT}"), PATIENCE, || {
            let ended = !matches!(bmc.child.try_wait(), Ok(None));
            (ended || listens(bmc.child.id(), address, PORT)).then_some(!ended)
        })?
        .then_some(())
        .ok_or_else(|| Error::Command {
            command: "ipmi_sim".to_owned(),
            outcome: format!("it ended at once: {}", children::tail(&log)),
        })?;
        Ok(bmc)
    }
}

impl Drop for IpmiProcess {
    fn drop(&mut self) {
        children::end(&mut self.child);
    }
}

/// Path of the chassis program in the work folder.
pub fn chassis_program(work: &Path) -> PathBuf {
    work.join("chassis")
}

/// Path of the socket that the chassis program connects to.
pub fn chassis_socket(work: &Path) -> PathBuf {
    work.join("chassis.sock")
}

/// Commands that create the BMC device in `ipmi_sim`, with the manufacturer and product numbers of
/// OpenIPMI's own examples.
const COMMANDS: &str = "mc_setbmc 0x20\n\
    mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n\
    sel_enable 0x20 1000 0x0a\n\
    mc_enable 0x20\n";

fn lan_conf(number: u8, access: &BmcAccess, work: &Path) -> String {
    let guid = machine::uuid(number).replace('-', "");
    format!(
        "name \"nuc{number}\"\n\
         set_working_mc 0x20\n\
         startlan 1\n\
         addr {address} {PORT}\n\
         priv_limit admin\n\
         allowed_auths_callback md5\n\
         allowed_auths_user md5\n\
         allowed_auths_operator md5\n\
         allowed_auths_admin md5\n\
         guid {guid}\n\
         endlan\n\
         chassis_control \"{program} {socket} {number}\"\n\
         user 2 true \"{user}\" \"{password}\" admin 10 md5\n",
        address = access.address,
        program = chassis_program(work).display(),
        socket = chassis_socket(work).display(),
        user = access.user,
        password = access.password.expose(),
    )
}

fn write(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    let path = dir.join(name);
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Error::path("write", &path))?;
    Ok(path)
}

/// True when the namespace of process `pid` has a UDP socket bound to `address` and `port`
/// (`/proc/PID/net/udp`: the address as hexadecimal in memory order, a colon, the port).
pub fn listens(pid: u32, address: Ipv4Addr, port: u16) -> bool {
    let table = fs::read_to_string(format!("/proc/{pid}/net/udp")).unwrap_or_default();
    let wanted = format!("{:08X}:{port:04X}", u32::from_le_bytes(address.octets()));
    table.lines().any(|line| line.split_whitespace().nth(1) == Some(wanted.as_str()))
}
