//! The configuration file: one struct a service, unknown keys refused, every mistake told at once.

mod images;
mod network;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::network::NetworkPlan;
use serde::Deserialize;

pub use images::Images;
pub use network::Network;

/// Where machines get boot files, scripts, images and metadata.
pub const HTTP_PORT: u16 = dhcp::DEFAULT_HTTP_PORT;

/// Everything `tinboxd` can be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The racks' networks, one for each interface, as they are written: `[network]`, or
    /// `[[network]]` for several.
    #[serde(deserialize_with = "network::one_or_more")]
    pub network: Vec<Network>,
    /// The same, read. The first one's address is the box's own, for the API and in kubeconfigs.
    #[serde(skip)]
    pub networks: Vec<NetworkPlan>,
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
    /// Files of other servers; without it, machines fetch them themselves.
    pub images: Option<Images>,
    /// What machines are told about themselves.
    #[serde(default)]
    pub metadata: metadata::Config,
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
    Config::read(&text).map_err(fail)
}

impl Config {
    fn read(text: &str) -> Result<Self, Vec<String>> {
        let mut config: Self = toml::from_str(text).map_err(|error| vec![error.to_string()])?;
        let networks = network::plans(&config.network);
        let mut problems = networks.as_ref().err().cloned().unwrap_or_default();
        problems.extend(config.problems());
        config.networks = networks.unwrap_or_default();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// What is wrong beside the networks.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |good: bool, problem: String| {
            if !good {
                problems.push(problem);
            }
        };
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
        problems.extend(self.images.iter().flat_map(Images::problems));
        problems.extend(self.metadata.problems());
        problems
    }

    /// The box's own address: that on the first network.
    pub fn address(&self) -> Ipv4Addr {
        self.networks.first().map_or(Ipv4Addr::LOCALHOST, |network| network.address)
    }

    /// The box's own address on the network of `near`; that on the first one for an address behind
    /// a relay.
    pub fn address_near(&self, near: Option<Ipv4Addr>) -> Ipv4Addr {
        let on_link = |network: &&NetworkPlan| {
            near.is_some_and(|near| network.subnets.first().is_some_and(|own| own.contains(near)))
        };
        let network = self.networks.iter().find(on_link);
        network.map_or_else(|| self.address(), |network| network.address)
    }

    /// Names and addresses of the API's certificate.
    pub fn api_names(&self) -> Vec<String> {
        let mut names = vec![
            "127.0.0.1".to_owned(),
            "localhost".to_owned(),
            "tinbox".to_owned(),
            "tinbox.local".to_owned(),
        ];
        names.extend(self.networks.iter().map(|network| network.address.to_string()));
        names.extend(self.api.names.iter().cloned());
        names
    }

    /// The API's URL in the administrator's kubeconfig.
    pub fn api_url(&self) -> String {
        let host = match self.api.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(self.address()),
            ip => ip,
        };
        format!("https://{}", SocketAddr::new(host, self.api.listen.port()))
    }
}

#[cfg(test)]
mod tests {
    use api::network::Mode;

    use super::Config;

    const GOOD: &str = "[network]\ninterface = 'eth0'\naddress = '10.77.0.1'\n\
        [boot]\nartifacts = '/'\n";

    fn parse(text: &str) -> Result<Config, String> {
        Config::read(text).map_err(|problems| problems.join("\n"))
    }

    #[test]
    fn the_nearest_address_is_named() {
        let text = "[[network]]\ninterface = 'eth0'\naddress = '10.77.0.1'\n\
            [[network]]\ninterface = 'eth1'\naddress = '10.78.0.1/16'\n[boot]\nartifacts = '/'\n";
        let config = parse(text).unwrap();
        let near = |octets: [u8; 4]| config.address_near(Some(octets.into())).to_string();
        assert_eq!(near([10, 77, 0, 9]), "10.77.0.1");
        assert_eq!(near([10, 78, 9, 9]), "10.78.0.1");
        assert_eq!(near([10, 79, 0, 9]), "10.77.0.1", "behind a relay");
        assert_eq!(config.address_near(None).to_string(), "10.77.0.1");
    }

    #[test]
    fn the_least_configuration_answers_no_dhcp() {
        let config = parse(GOOD).unwrap();
        assert_eq!(config.networks[0].mode, Mode::Off);
        assert!(!config.agents.permissive);
        assert!(config.images.is_none());
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
            [agents]\nsilence_secs = 1\n[bmc]\npoll_secs = 0\n\
            [images]\ncache = 'here'\nbudget_percent = 100\nauthorities = '/nope'\n\
            plain_registries = ['http://a']\n\
            [metadata]\ntrusted_proxies = ['::/0']\n";
        let error = parse(text).unwrap_err();
        assert_eq!(error.lines().count(), 10, "{error}");
        assert!(error.contains("images.budget_percent: 100 % is not between 10 % and 85 %"));
        assert!(error.contains("agents.silence_secs: 1 s is not between 20 s and 3600 s"));
    }
}
