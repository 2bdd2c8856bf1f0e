//! OpenIPMI's `ipmi_sim`: an independent BMC. Its chassis is a shell script that stores the state
//! in files. `ipmi_sim` supports cipher suite 3, not 17, and never answers Get Channel Cipher
//! Suites.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
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
mc_enable 0x20
";

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
        power) echo "power:$(cat power 2>/dev/null || echo 0)" ;;
        boot) echo "boot:$(cat boot 2>/dev/null || echo none)" ;;
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

/// RMCP's port (IPMI v2.0, 13.1.1).
const PORT: u16 = 623;

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
    /// User with administrator privilege.
    pub const USERNAME: &str = "admin";
    /// Password of the user [`IpmiSim::USERNAME`].
    pub const PASSWORD: &str = "secret";

    /// Starts a BMC on a loopback address of its own and waits until it answers. The machine is
    /// off.
    pub fn start() -> Result<Self> {
        let program = find("ipmi_sim", "openipmi")?;
        let folder = TempDir::with_prefix("ipmi_sim-")?;
        let at = |name: &str| folder.path().join(name);
        let address = loopback_address()?;
        fs::write(at("chassis"), CHASSIS)?;
        fs::set_permissions(at("chassis"), fs::Permissions::from_mode(0o755))?;
        fs::write(at("commands"), COMMANDS)?;
        fs::write(at("lan"), configuration(address, &at("chassis")))?;
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
        socket.connect((self.address, PORT))?;
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
            address: Address { host: self.address.to_string(), port: PORT },
            credentials: Credentials {
                username: Self::USERNAME.into(),
                password: Self::PASSWORD.into(),
            },
            protocol: Protocol::Ipmi { cipher_suite },
        }
    }

    /// All commands that the chassis received, in order: `power 1`, `boot pxe`, `reset 1`,
    /// `shutdown 1`.
    pub fn told(&self) -> Vec<String> {
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

fn configuration(address: Ipv4Addr, chassis: &Path) -> String {
    let levels = ["callback", "user", "operator", "admin"]
        .map(|level| format!("    allowed_auths_{level} none md2 md5 straight\n"))
        .concat();
    format!(
        "name \"nuc\"\nset_working_mc 0x20\n  startlan 1\n    addr {address} {PORT}\n    \
         priv_limit admin\n{levels}    guid a123456789abcdefa123456789abcdef\n  endlan\n  \
         chassis_control \"{} 1\"\n  \
         user 1 true  \"\"        \"test\" user     10       none md2 md5 straight\n  \
         user 2 true  \"{}\" \"{}\" admin    10       none md2 md5 straight\n",
        chassis.display(),
        IpmiSim::USERNAME,
        IpmiSim::PASSWORD,
    )
}
