//! The configuration file: one struct a service, unknown keys refused, every mistake told at once.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

/// Everything `tinboxd` can be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The rack's network.
    pub network: Network,
    /// What machines boot.
    pub boot: Boot,
    /// The API.
    #[serde(default)]
    pub api: Api,
    /// The agents.
    #[serde(default)]
    pub agents: Agents,
    /// The management controllers.
    #[serde(default)]
    pub bmc: Bmc,
}

/// The rack's network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Interface of the rack.
    pub interface: String,
    /// The box's address there.
    pub address: Ipv4Addr,
    /// Answer DHCP for known machines. Off until somebody says so: never a rogue server.
    #[serde(default)]
    pub dhcp: bool,
    /// Send router advertisements, so that iPXE does not wait for an IPv6 router.
    #[serde(default = "yes")]
    pub router_advertisements: bool,
}

/// What machines boot.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Folder with `ipxe/`, `agent/` and `images/`.
    pub artifacts: PathBuf,
    /// Kernel of the agent OS, in `agent/`.
    #[serde(default = "kernel")]
    pub kernel: String,
    /// Initramfs of the agent OS, in `agent/`.
    #[serde(default = "initramfs")]
    pub initramfs: String,
    /// Consoles of the agent OS; the last one gets its words.
    #[serde(default = "consoles")]
    pub consoles: Vec<String>,
    /// More arguments for the kernel of the agent OS.
    #[serde(default)]
    pub kernel_args: Vec<String>,
}

/// The Kubernetes-compatible API.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Api {
    /// Where it listens.
    pub listen: SocketAddr,
    /// More names for its certificate, beside the network address and localhost.
    pub names: Vec<String>,
}

/// The agents.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agents {
    /// Serve agents that have no boot token, as stock Tinkerbell agents do not. Whoever reaches the
    /// port then reads every action's environment.
    pub permissive: bool,
    /// Seconds an agent that runs an action may be silent before its machine is booted again.
    pub silence_secs: u32,
    /// Seconds a machine may take from power-on to its first question.
    pub boot_secs: u32,
}

/// The management controllers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bmc {
    /// Seconds between two readings of a machine's power state.
    pub poll_secs: u32,
}

impl Default for Api {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([0, 0, 0, 0], 6443)), names: Vec::new() }
    }
}

impl Default for Agents {
    fn default() -> Self {
        Self { permissive: false, silence_secs: 60, boot_secs: 300 }
    }
}

impl Default for Bmc {
    fn default() -> Self {
        Self { poll_secs: 30 }
    }
}

impl Bmc {
    /// Between two readings of a machine's power state.
    pub fn poll(&self) -> Duration {
        Duration::from_secs(self.poll_secs.into())
    }
}

fn yes() -> bool {
    true
}

fn kernel() -> String {
    "vmlinuz-x86_64".to_owned()
}

fn initramfs() -> String {
    "initramfs-x86_64".to_owned()
}

fn consoles() -> Vec<String> {
    vec!["tty0".to_owned(), "ttyS0,115200".to_owned()]
}

/// What is wrong with a configuration.
#[derive(Debug)]
pub struct Problems {
    file: PathBuf,
    list: Vec<String>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use the configuration {}", self.file.display())?;
        self.list.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// Read and check a configuration.
pub fn load(file: &Path) -> Result<Config, Problems> {
    let fail = |list| Problems { file: file.to_owned(), list };
    let text = std::fs::read_to_string(file).map_err(|error| fail(vec![error.to_string()]))?;
    let config: Config = toml::from_str(&text).map_err(|error| fail(vec![error.to_string()]))?;
    let problems = config.problems();
    if problems.is_empty() { Ok(config) } else { Err(fail(problems)) }
}

impl Config {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |good: bool, problem: String| {
            if !good {
                problems.push(problem);
            }
        };
        let name = &self.network.interface;
        let good = (1..=15).contains(&name.len()) && !name.contains(['/', ' ']);
        check(good, format!("network.interface: {name:?} is no interface name"));
        let address = self.network.address;
        let good = !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast();
        check(good, format!("network.address: {address} is no address of a machine"));
        let folder = &self.boot.artifacts;
        check(folder.is_dir(), format!("boot.artifacts: {} is no folder", folder.display()));
        for (key, secs, from, to) in [
            ("agents.silence_secs", self.agents.silence_secs, 20, 3600),
            ("agents.boot_secs", self.agents.boot_secs, 30, 7200),
            ("bmc.poll_secs", self.bmc.poll_secs, 1, 86_400),
        ] {
            let good = (from..=to).contains(&secs);
            check(good, format!("{key}: {secs} s is not between {from} s and {to} s"));
        }
        problems
    }

    /// Names and addresses of the API's certificate.
    pub fn api_names(&self) -> Vec<String> {
        let mut names = vec![
            self.network.address.to_string(),
            "127.0.0.1".to_owned(),
            "localhost".to_owned(),
            "tinbox".to_owned(),
            "tinbox.local".to_owned(),
        ];
        names.extend(self.api.names.iter().cloned());
        names
    }

    /// The API's URL in the administrator's kubeconfig.
    pub fn api_url(&self) -> String {
        let host = match self.api.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(self.network.address),
            ip => ip,
        };
        format!("https://{}", SocketAddr::new(host, self.api.listen.port()))
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    const GOOD: &str = "[network]\ninterface = 'eth0'\naddress = '10.77.0.1'\n\
        [boot]\nartifacts = '/'\n";

    fn parse(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        match config.problems() {
            problems if problems.is_empty() => Ok(config),
            problems => Err(problems.join("\n")),
        }
    }

    #[test]
    fn the_least_configuration_answers_no_dhcp() {
        let config = parse(GOOD).unwrap();
        assert!(!config.network.dhcp);
        assert!(!config.agents.permissive);
        assert_eq!(config.api_url(), "https://10.77.0.1:6443");
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = parse(&format!("{GOOD}speed = 1\n")).unwrap_err();
        assert!(error.contains("speed"), "{error}");
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let text = "[network]\ninterface = 'a b'\naddress = '0.0.0.0'\n\
            [boot]\nartifacts = '/nope'\n\
            [agents]\nsilence_secs = 1\n[bmc]\npoll_secs = 0\n";
        let error = parse(text).unwrap_err();
        assert_eq!(error.lines().count(), 5, "{error}");
        assert!(error.contains("agents.silence_secs: 1 s is not between 20 s and 3600 s"));
    }
}
