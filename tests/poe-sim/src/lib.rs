//! Switch with Power over Ethernet for tests: Debian's `snmpd` speaks SNMP and checks the logins,
//! and hands the objects of POWER-ETHERNET-MIB and IF-MIB to this crate (`pass_persist`).
//!
//! Never: encodes or decodes SNMP, or shares code with our client.
//! Enter at [`PoePorts`].

mod objects;
mod server;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

/// Program that snmpd starts for the objects.
const RELAY: &str = include_str!("relay.py");

/// One port of the switch, with the power of its device.
#[derive(Debug, Clone, Default)]
pub struct Port {
    /// Group and number, the two indexes of `pethPsePortTable`.
    pub id: (u32, u32),
    /// True if the port is switched on (`pethPsePortAdminEnable`).
    pub is_on: bool,
    /// True if a device is connected, which draws power from a port that is on.
    pub has_device: bool,
    /// True if the port has a fault until it is switched off.
    pub has_fault: bool,
    /// Text of `pethPsePortType`, which people at the switch write.
    pub kind: String,
    /// `ifName` and `ifAlias` of the interface whose number is that of the port.
    pub interface: Option<(String, String)>,
}

impl Port {
    /// Creates a port that is switched off, with a connected device.
    pub fn with_device(group: u32, number: u32) -> Self {
        Self { id: (group, number), has_device: true, ..Self::default() }
    }
}

/// Behavior of the switch. Tests change it while the switch runs.
#[derive(Debug, Clone, Default)]
pub struct Behavior {
    /// Answer of `pass_persist` to each request that sets an object, such as `not-writable`.
    pub refusal: Option<&'static str>,
    /// True for a switch that accepts each request and changes nothing.
    pub lies: bool,
    /// Readings of the detection status that show the old value after a change.
    pub late_readings: u32,
    /// Value of the detection status of each port, instead of the right one.
    pub detection: Option<i32>,
}

/// Function that is called after a port was switched on or off.
pub type Listener = Box<dyn Fn(&Port) + Send + Sync>;

/// State of a switch.
#[derive(Debug, Default)]
struct State {
    ports: Vec<Port>,
    behavior: Behavior,
    /// Remaining readings of the old detection status, and this status, of one port.
    late: Option<((u32, u32), u32, i32)>,
    requests: Vec<String>,
}

/// Ports of a switch that one `snmpd` serves.
pub struct PoePorts {
    state: Arc<Mutex<State>>,
    folder: PathBuf,
}

impl PoePorts {
    /// Group and number of the port of most tests.
    pub const PORT: (u32, u32) = (1, 3);
    /// User with the right to read and write, SHA-256 and AES-128.
    pub const USER: &str = "tinbox";
    /// User with SHA-1 and AES-128, and the same passwords.
    pub const SHA1_USER: &str = "tinbox-sha1";
    /// User that may only read, with the keys of [`PoePorts::USER`].
    pub const READER: &str = "reader";
    /// User that has only keys for authentication.
    pub const AUTHENTICATED: &str = "authenticated";
    /// Password of the authentication of all users.
    pub const PASSWORD: &str = "authenticate-me";
    /// Password of the encryption of all users.
    pub const PRIVACY: &str = "encrypt-me-too";
    /// Community string with the right to read and write.
    pub const COMMUNITY: &str = "write-here";
    /// Community string that may only read.
    pub const READ_COMMUNITY: &str = "read-here";
    /// Community string that sees no object of POWER-ETHERNET-MIB.
    pub const BLIND_COMMUNITY: &str = "see-little";

    /// Creates the switch. Its files are in `folder`, and `listener` is called after each change.
    ///
    /// # Errors
    /// A file or the socket cannot be created.
    pub fn serve(folder: &Path, ports: Vec<Port>, listener: Listener) -> Result<Self> {
        let state = Arc::new(Mutex::new(State { ports, ..State::default() }));
        let sim = Self { state, folder: folder.to_owned() };
        fs::write(sim.relay(), RELAY).context("cannot write the program of pass_persist")?;
        server::start(&sim.socket(), Arc::clone(&sim.state), listener)?;
        Ok(sim)
    }

    /// Writes the configuration of snmpd for the UDP address `listen`, with `privacy` as the
    /// password of the users' encryption, and returns the words of the command that starts snmpd.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn command(&self, listen: SocketAddr, privacy: &str) -> Result<Vec<String>> {
        let path = self.folder.join("snmpd.conf");
        fs::write(&path, self.configuration(privacy)).context("cannot write snmpd.conf")?;
        let listen = match listen {
            SocketAddr::V4(listen) => format!("udp:{listen}"),
            SocketAddr::V6(listen) => format!("udp6:{listen}"),
        };
        let folder = format!("SNMPCONFPATH={}", self.folder.display());
        let store = format!("SNMP_PERSISTENT_DIR={}", self.store().display());
        // Without MIB files, of which Debian has no free copy.
        let words = ["env", "MIBS=", &folder, &store, "snmpd", "-f", "-Lo", "-I", "-ifXTable"];
        let words = words.into_iter().chain([listen.as_str()]);
        Ok(words.map(str::to_owned).collect())
    }

    /// Folder in which snmpd stores its engine ID and the number of its starts.
    pub fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// Changes the ports, as a person at the switch does. The listener is not called.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Port>)) {
        change(&mut hold(&self.state).ports);
    }

    /// Changes the behavior of the switch.
    pub fn behave(&self, behavior: Behavior) {
        hold(&self.state).behavior = behavior;
    }

    /// Returns true if the port is switched on.
    pub fn is_on(&self, id: (u32, u32)) -> bool {
        hold(&self.state).ports.iter().any(|port| port.id == id && port.is_on)
    }

    /// Returns all requests that set an object, in order, such as `1.3 on`.
    pub fn requests(&self) -> Vec<String> {
        hold(&self.state).requests.clone()
    }

    fn relay(&self) -> PathBuf {
        self.folder.join("relay.py")
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("switch.sock")
    }

    fn configuration(&self, privacy: &str) -> String {
        let user = |name: &str, hash: &str| {
            format!("createUser {name} {hash} \"{}\" AES \"{privacy}\"\n", Self::PASSWORD)
        };
        let users = [
            user(Self::USER, "SHA-256"),
            user(Self::SHA1_USER, "SHA"),
            user(Self::READER, "SHA-256"),
            format!("createUser {} SHA-256 \"{}\"\n", Self::AUTHENTICATED, Self::PASSWORD),
        ];
        let pass = |priority: &str, object: &str| {
            format!(
                "pass_persist {priority} {object} /usr/bin/python3 {} {}\n",
                self.relay().display(),
                self.socket().display()
            )
        };
        format!(
            "{users}\
             rwuser {user} authpriv\n\
             rwuser {sha1} authpriv\n\
             rouser {reader} authpriv\n\
             rwuser {authenticated} auth\n\
             rwcommunity {write}\n\
             rocommunity {read}\n\
             rocommunity {blind} default .1.3.6.1.2.1.1\n\
             {power}{interfaces}",
            users = users.concat(),
            user = Self::USER,
            sha1 = Self::SHA1_USER,
            reader = Self::READER,
            authenticated = Self::AUTHENTICATED,
            write = Self::COMMUNITY,
            read = Self::READ_COMMUNITY,
            blind = Self::BLIND_COMMUNITY,
            power = pass("-p 1", objects::POWER),
            interfaces = pass("-p 1", objects::INTERFACES),
        )
    }
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
