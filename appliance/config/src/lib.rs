//! Configuration file `box.toml`: one struct for each service. Unknown keys are refused, and all
//! mistakes are reported at once.
//!
//! This crate never changes the file or the box. Entry points: [`Config::read`], and
//! [`mistakes::checked`] for mistakes with their lines.

pub mod backup;
mod bond;
mod file;
mod images;
mod management;
mod network;
pub mod panel;
mod templates;
mod update;
mod web;
mod zone;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::network::NetworkPlan;
use serde::Deserialize;

pub use backup::Backup;
pub use bond::Bond;
pub use file::{Problems, load, mistakes, sections};
pub use images::Images;
pub use management::Management;
pub use network::Network;
pub use panel::Panel;
pub use templates::Templates;
pub use update::{Hours, Restart, Update};
pub use web::Web;
pub use zone::{names as zones, zone};

/// TCP port of the HTTP server for boot files, scripts, images and metadata: 7080.
pub const HTTP_PORT: u16 = dhcp::DEFAULT_HTTP_PORT;

/// All settings of `tinboxd`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Host name of the box, used as `NAME.local`, on the panel and for DHCP servers. 1 to 63
    /// letters, digits and hyphens. Default: `box-` and the last four hexadecimal digits of the MAC
    /// address of the first NIC, such as `box-7f3a`. Flashed box only.
    pub name: Option<String>,
    /// Clock and time zone of the box. Flashed box only.
    #[serde(default)]
    pub time: Time,
    /// Updates of the box's system. Flashed box only.
    #[serde(default, alias = "upgrade")]
    pub update: Update,
    /// Networks with machines, one for each interface: `[network]`, or `[[network]]` for several.
    #[serde(default, deserialize_with = "network::one_or_more")]
    pub network: Vec<Network>,
    /// Checked form of `network`. The first network's address is the box's own address, used for
    /// the API and in kubeconfigs.
    #[serde(skip)]
    pub networks: Vec<NetworkPlan>,
    /// Interfaces on which the owner reaches the box, one table for each. Interfaces without a
    /// table get an address by DHCP. Flashed box only.
    #[serde(default, deserialize_with = "network::one_or_more")]
    pub management: Vec<Management>,
    /// Daily backup on another server. Default: backups stay on the box.
    pub backup: Option<Backup>,
    /// Boot files of the agent OS.
    #[serde(default)]
    pub boot: Boot,
    /// Kubernetes-compatible API of the box.
    #[serde(default)]
    pub api: Api,
    /// Agents on the machines.
    #[serde(default)]
    pub agents: Agents,
    /// Data that workflow templates may read.
    #[serde(default)]
    pub templates: Templates,
    /// Management controllers (BMCs) of the machines.
    #[serde(default)]
    pub bmc: Bmc,
    /// Cache for files of other servers. Default on a flashed box: a cache in `/cache/images`.
    /// Default on Linux: no cache, and machines fetch the files themselves.
    pub images: Option<Images>,
    /// Web pages of `tinboxd` on Linux. Default: no pages. A flashed box refuses this table and
    /// always serves its pages on port 443.
    pub web: Option<Web>,
    /// Small screen, buttons and LEDs at the front of the box. Flashed box only.
    pub panel: Option<Panel>,
    /// Metadata service for machines.
    #[serde(default)]
    pub metadata: metadata::Config,
}

/// Returns true for a valid label of a host name (RFC 1123 section 2.1).
fn is_label(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=63).contains(&name.len())
        && name.chars().all(good)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Clock of the box. Flashed box only.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Time {
    /// Names or addresses of NTP servers. Default: the servers that the DHCP server names, or
    /// public servers if it names none. With an empty list, NTP does not set the clock.
    pub servers: Option<Vec<String>>,
    /// Time zone in which the box shows times, as a name of the tz database: `Europe/Berlin`.
    /// Default: UTC.
    pub zone: Option<String>,
}

/// Boot files of the agent OS.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Folder with `ipxe/`, `agent/` and `images/`. Default: `/run/tinbox/artifacts`, the files of
    /// the box's own system.
    #[serde(default = "artifacts")]
    pub artifacts: PathBuf,
    /// File name of the agent OS's kernel in `agent/`.
    #[serde(default = "kernel")]
    pub kernel: String,
    /// File name of the agent OS's initramfs in `agent/`.
    #[serde(default = "initramfs")]
    pub initramfs: String,
    /// Consoles of the agent OS, as values of the kernel argument `console`. The last one shows the
    /// messages of the system. Default: `tty0` and `ttyS0,115200`.
    #[serde(default = "consoles")]
    pub consoles: Vec<String>,
    /// More kernel arguments of the agent OS. Default: none.
    #[serde(default)]
    pub kernel_args: Vec<String>,
}

/// Kubernetes-compatible API of the box.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Api {
    /// Address and TCP port on which the API listens. Default: `0.0.0.0:6443`.
    pub listen: SocketAddr,
    /// More names or addresses for the API's certificate. The network addresses, `localhost`,
    /// `tinbox` and `tinbox.local` are always in it. Default: none.
    pub names: Vec<String>,
}

/// Agents on the machines.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agents {
    /// Serve agents without a boot token, such as stock Tinkerbell agents. Any client that reaches
    /// TCP port 42113 can then read the environment of all actions and report for all machines.
    pub permissive: bool,
    /// Create a workflow by a matching WorkflowRuleSet when an agent without a workflow connects,
    /// if its Hardware was created by `network.enroll` or has `auto.enrollmentEnabled: true`. With
    /// `network.enroll`, every connected machine that matches a rule is installed.
    pub enrollment: bool,
    /// Seconds without a message after which an agent that runs an action counts as lost. The box
    /// then boots the machine again through its BMC. 20 to 3600.
    pub silence_secs: u32,
    /// Seconds from power-on to the first request of the agent, after which the box boots the
    /// machine again. 30 to 7200.
    pub boot_secs: u32,
}

/// Management controllers (BMCs) of the machines.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bmc {
    /// Seconds between two readings of a machine's power state. 1 to 86400.
    pub poll_secs: u32,
}

impl Default for Boot {
    fn default() -> Self {
        Self {
            artifacts: artifacts(),
            kernel: kernel(),
            initramfs: initramfs(),
            consoles: consoles(),
            kernel_args: Vec::new(),
        }
    }
}

impl Default for Api {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([0, 0, 0, 0], 6443)), names: Vec::new() }
    }
}

impl Default for Agents {
    fn default() -> Self {
        Self { permissive: false, enrollment: false, silence_secs: 60, boot_secs: 300 }
    }
}

impl Default for Bmc {
    fn default() -> Self {
        Self { poll_secs: 30 }
    }
}

impl Bmc {
    /// Returns `poll_secs` as a duration.
    pub fn poll(&self) -> Duration {
        Duration::from_secs(self.poll_secs.into())
    }
}

fn artifacts() -> PathBuf {
    platform::init::ARTIFACTS.into()
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

/// Kind of system that this program runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemKind {
    /// Ordinary process on a Linux host; the host's network is configured elsewhere.
    Guest,
    /// Flashed box: every setting has a default, and the file may be absent.
    Firmware,
}

/// Computer that checks a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    /// Computer that the configuration is for: its folders and files must exist.
    Own,
    /// Another computer: paths are not checked.
    Foreign,
}

impl Config {
    /// Parses a text and checks all of it.
    ///
    /// # Errors
    /// The text has mistakes; all are returned. A mistake of the TOML format ends the check, and
    /// its text has the line. All other mistakes begin with their key.
    pub fn read(text: &str, system_kind: SystemKind) -> Result<Self, Vec<String>> {
        Self::read_with(text, system_kind, Disk::Own)
    }

    fn read_with(text: &str, system_kind: SystemKind, disk: Disk) -> Result<Self, Vec<String>> {
        // Some editors on the laptops that write the card begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut config: Self = toml::from_str(text).map_err(|error| {
            vec![sections::two_names(&error).unwrap_or_else(|| error.to_string())]
        })?;
        let networks = network::plans(&config.network);
        let mut problems = networks.as_ref().err().cloned().unwrap_or_default();
        if let (SystemKind::Firmware, Some(images)) = (system_kind, &mut config.images)
            && images.cache.as_os_str().is_empty()
        {
            images.cache = Images::folder(Path::new(platform::init::CACHE));
        }
        problems.extend(config.problems(disk));
        problems.extend(config.problems_at(system_kind));
        if system_kind == SystemKind::Firmware && config.images.is_none() {
            config.images = Some(Images::in_folder(Path::new(platform::init::CACHE)));
        }
        config.networks = networks.unwrap_or_default();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Returns the configuration of a flashed box without a file: no network, no machine served.
    pub fn untold() -> Self {
        let images = Some(Images::in_folder(Path::new(platform::init::CACHE)));
        Self { images, ..Self::default() }
    }

    /// Returns the mistakes that depend on the kind of system.
    fn problems_at(&self, system_kind: SystemKind) -> Vec<String> {
        match system_kind {
            SystemKind::Guest => {
                let none = self.network.is_empty();
                let mut problems = Vec::new();
                problems.extend(none.then(|| "network: at least one is required".to_owned()));
                problems.extend(network::without_address(&self.network));
                for (key, there) in [
                    ("management", !self.management.is_empty()),
                    ("name", self.name.is_some()),
                    ("time", self.time.servers.is_some() || self.time.zone.is_some()),
                    ("panel", self.panel.is_some()),
                    ("network.bond", self.network.iter().any(|it| it.bond.is_some())),
                    ("update", self.update != Update::default()),
                ] {
                    problems.extend(there.then(|| {
                        format!(
                            "{key}: set this in the operating system of this machine; only a \
                             flashed box supports this key"
                        )
                    }));
                }
                problems
            }
            SystemKind::Firmware => {
                let mut problems = management::problems(&self.management, &self.network);
                let interfaces = bond::interfaces(&self.management, &self.network);
                problems.extend(bond::problems(&interfaces));
                problems.extend(self.web.iter().map(|_| web::NOT_HERE.to_owned()));
                problems.extend(self.panel.iter().flat_map(Panel::problems));
                problems.extend(self.time.zone.as_deref().and_then(zone::problem));
                problems.extend(self.update.problems());
                let named = self.name.as_deref().filter(|name| !is_label(name));
                problems.extend(named.map(|name| {
                    format!(
                        "name: {name:?} is not a valid host name: use up to 63 letters, digits \
                         and hyphens, without a hyphen at either end"
                    )
                }));
                problems
            }
        }
    }

    /// Returns the interfaces that combine several NICs (bonds).
    pub fn bonds(&self) -> Vec<platform::net::Bond> {
        bond::bonds(&bond::interfaces(&self.management, &self.network))
    }

    /// Returns the mistakes that do not depend on the kind of system; not those of networks.
    fn problems(&self, disk: Disk) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |good: bool, problem: String| {
            if !good {
                problems.push(problem);
            }
        };
        let folder = &self.boot.artifacts;
        let exists = disk == Disk::Foreign || folder.is_dir();
        check(exists, format!("boot.artifacts: {} is not a folder", folder.display()));
        for (key, secs, from, to) in [
            ("agents.silence_secs", self.agents.silence_secs, 20, 3600),
            ("agents.boot_secs", self.agents.boot_secs, 30, 7200),
            ("bmc.poll_secs", self.bmc.poll_secs, 1, 86_400),
        ] {
            let good = (from..=to).contains(&secs);
            check(good, format!("{key}: {secs} s is not between {from} s and {to} s"));
        }
        problems.extend(self.images.iter().flat_map(|images| images.problems(disk)));
        problems.extend(self.backup.iter().flat_map(Backup::problems));
        problems.extend([self.metadata.problems(), self.templates.problems()].concat());
        problems
    }

    /// Returns the box's own address: its address on the first network.
    pub fn address(&self) -> Ipv4Addr {
        self.networks.first().map_or(Ipv4Addr::LOCALHOST, |network| network.address)
    }

    /// Returns the box's own address on the network of `near`. If `near` is behind a relay or
    /// `None`, returns the address on the first network.
    pub fn address_near(&self, near: Option<Ipv4Addr>) -> Ipv4Addr {
        let on_link = |network: &&NetworkPlan| {
            near.is_some_and(|near| network.subnets.first().is_some_and(|own| own.contains(near)))
        };
        let network = self.networks.iter().find(on_link);
        network.map_or_else(|| self.address(), |network| network.address)
    }

    /// Returns the names and addresses for the API's certificate.
    pub fn api_names(&self) -> Vec<String> {
        let mut names = vec![
            "127.0.0.1".to_owned(),
            "localhost".to_owned(),
            "tinbox".to_owned(),
            "tinbox.local".to_owned(),
        ];
        names.extend(self.networks.iter().map(|network| network.address.to_string()));
        names.extend(self.api.names.iter().cloned());
        names.extend(self.web.iter().filter_map(Web::name));
        names
    }

    /// Returns the URL of the API for the administrator's kubeconfig.
    pub fn api_url(&self) -> String {
        let host = match self.api.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(self.address()),
            ip => ip,
        };
        format!("https://{}", SocketAddr::new(host, self.api.listen.port()))
    }
}

#[cfg(test)]
mod tests;
