//! OpenIPMI's `ipmi_sim`: an independent BMC. Its chassis is a shell script that stores the state
//! in files. `ipmi_sim` supports cipher suite 3, not 17, and never answers Get Channel Cipher
//! Suites.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use bmc::{Address, CipherSuite, Credentials, Endpoint, Protocol};
use tempfile::TempDir;

use crate::{find, loopback_address, poll};

/// Maximum time from the start of `ipmi_sim` to its first answer.
const START_LIMIT: Duration = Duration::from_secs(120);

const COMMANDS: &str = "mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x01 0x30 0x01 0x59 0x5a 0x50
sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x23 0x31 0x6f 0x01 0xff 0xff
sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x08 0x32 0xef 0x03 0xff 0xff
sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x0c 0x33 0x6f 0x01 0xff 0xff
sensor_add 0x20 0 0x30 0x01 0x01
sensor_set_threshold 0x20 0 0x30 settable 111111 0x60 0x5a 0x50 0x01 0x03 0x05
sensor_set_event_support 0x20 0 0x30 enable scanning per-state ALL ALL ALL ALL
sensor_set_value 0x20 0 0x30 0x52 0
sensor_add 0x20 0 0x31 0x04 0x01
sensor_set_event_support 0x20 0 0x31 enable scanning per-state ALL ALL ALL ALL
sensor_set_value 0x20 0 0x31 0x2d 0
sensor_add 0x20 0 0x32 0x02 0x01
main_sdr_add 0x20 1 0 0x51 1 0x33 KEY 0x30 ENTITY 1 1 MASKS 0 0x01 0 0 0x01 0 0 0 0 0 LIMITS \
    0xc8 0x43 0x50 0x55 0x5f 0x54 0x65 0x6d 0x70
main_sdr_add 0x20 2 0 0x51 1 0x2f KEY 0x31 ENTITY 4 1 MASKS 0 0x12 0 0 0x64 0 0 0 0 0 LIMITS \
    0xc4 0x46 0x61 0x6e 0x31
main_sdr_add 0x20 3 0 0x51 1 0x2e KEY 0x32 ENTITY 2 1 MASKS 0 0x04 0 0 0x3f 0 0 0 0 0xd0 LIMITS \
    0xc3 0x31 0x32 0x56
mc_enable 0x20
";

/// Bytes that the sensor data records of [`COMMANDS`] have in common.
const RECORD_PARTS: [(&str, &str); 5] = [
    ("ALL", "000111111111111"),
    ("KEY", "0x20 0"),
    ("ENTITY", "0x03 1 0x7f 0x68"),
    ("MASKS", "0x95 0x0a 0x95 0x0a 0x3f 0x3f"),
    ("LIMITS", "0 0 0 0 0xff 0 0x60 0x5a 0x50 1 3 5 0 0 0 0 0"),
];

/// Script that `ipmi_sim` calls for chassis commands: `chassis 1 get power`, `chassis 1 set boot
/// pxe` and the like.
const CHASSIS: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
shift
operation=$1
shift
if [ "$operation" = get ]; then
    for name in "$@"; do
        case $name in
        power) value=0; [ -f power ] && read -r value <power; echo "power:$value" ;;
        boot) value=none; [ -f boot ] && read -r value <boot; echo "boot:$value" ;;
        esac
    done
    exit 0
fi
while [ $# -ge 2 ]; do
    echo "$1 $2" >>log
    echo "$2" >"$1"
    [ "$1" = shutdown ] && echo 0 >power
    shift 2
done
exit 0
"#;

/// Request Get Channel Authentication Capabilities outside of a session, which any BMC answers.
const ANYONE_THERE: [u8; 23] = [
    0x06, 0x00, 0xFF, 0x07, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x20, 0x18, 0xC8, 0x81, 0x00, 0x38,
    0x0E, 0x04, 0x35,
];

/// A running `ipmi_sim`, ended when dropped.
pub struct IpmiSim {
    child: Child,
    folder: TempDir,
    address: Ipv4Addr,
}

impl IpmiSim {
    /// RMCP's port (IPMI v2.0, 13.1.1).
    pub const PORT: u16 = 623;
    /// User with administrator privilege.
    pub const USERNAME: &str = "admin";
    /// Password of the user [`IpmiSim::USERNAME`].
    pub const PASSWORD: &str = "secret";

    /// Starts a BMC on a loopback address of its own and waits until it answers. The machine is
    /// off.
    pub fn start() -> Result<Self> {
        Self::launch(None)
    }

    /// Starts a BMC as [`IpmiSim::start`], whose serial port is a TCP connection to `serial`.
    pub fn start_with_serial(serial: SocketAddr) -> Result<Self> {
        Self::launch(Some(serial))
    }

    fn launch(serial: Option<SocketAddr>) -> Result<Self> {
        let program = find("ipmi_sim", "openipmi")?;
        let folder = TempDir::with_prefix("ipmi_sim-")?;
        let at = |name: &str| folder.path().join(name);
        let address = loopback_address()?;
        fs::write(at("chassis"), CHASSIS)?;
        fs::set_permissions(at("chassis"), fs::Permissions::from_mode(0o755))?;
        let commands = RECORD_PARTS
            .iter()
            .fold(COMMANDS.to_owned(), |text, (name, bytes)| text.replace(name, bytes));
        fs::write(at("commands"), commands)?;
        fs::write(at("lan"), configuration(address, &at("chassis"), serial))?;
        fs::create_dir(at("state"))?;
        let output = fs::File::create(at("output"))?;
        let child = Command::new(&program)
            .arg("-c")
            .arg(at("lan"))
            .arg("-f")
            .arg(at("commands"))
            .arg("-s")
            .arg(at("state"))
            .arg("-n")
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let sim = Self { child, folder, address };
        sim.wait_until_it_answers()?;
        Ok(sim)
    }

    fn wait_until_it_answers(&self) -> Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect((self.address, Self::PORT))?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let answers = || {
            let mut buffer = [0; 64];
            socket.send(&ANYONE_THERE).is_ok() && socket.recv(&mut buffer).is_ok()
        };
        poll("an answer of ipmi_sim", START_LIMIT, answers).with_context(|| {
            let output = fs::read_to_string(self.folder.path().join("output"));
            format!("ipmi_sim said: {}", output.unwrap_or_default())
        })
    }

    /// Endpoint of the BMC. The client uses `cipher_suite`, or selects a suite itself for `None`.
    pub fn endpoint(&self, cipher_suite: Option<CipherSuite>) -> Endpoint {
        Endpoint {
            address: Address { host: self.address.to_string(), port: Self::PORT },
            credentials: Credentials {
                username: Self::USERNAME.into(),
                password: Self::PASSWORD.into(),
            },
            protocol: Protocol::Ipmi { cipher_suite },
        }
    }

    /// Address of the BMC.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// All commands that the chassis received, in order: `power 1`, `boot pxe`, `reset 1`,
    /// `shutdown 1`.
    pub fn commands(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for IpmiSim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(address: Ipv4Addr, chassis: &Path, serial: Option<SocketAddr>) -> String {
    let port = IpmiSim::PORT;
    let serial = serial.map(|serial| format!("  sol \"tcp:{serial}\" 115200\n"));
    let levels = ["callback", "user", "operator", "admin"]
        .map(|level| format!("    allowed_auths_{level} none md2 md5 straight\n"))
        .concat();
    format!(
        "name \"nuc\"\nset_working_mc 0x20\n  startlan 1\n    addr {address} {port}\n    \
         priv_limit admin\n{levels}    guid a123456789abcdefa123456789abcdef\n  endlan\n  \
         chassis_control \"{} 1\"\n{}  \
         user 1 true  \"\"        \"test\" user     10       none md2 md5 straight\n  \
         user 2 true  \"{}\" \"{}\" admin    10       none md2 md5 straight\n",
        chassis.display(),
        serial.unwrap_or_default(),
        IpmiSim::USERNAME,
        IpmiSim::PASSWORD,
    )
}
