//! The configuration file `box.toml`: one struct a service, unknown keys refused, all mistakes
//! reported at once.
//!
//! Never: a change of the file or of the box. Enter at [`Config::read`], or at
//! [`mistakes::checked`] for mistakes with their lines.

pub mod bond;
mod file;
mod images;
mod management;
pub mod mistakes;
mod network;
pub mod panel;
mod templates;
mod upgrade;
mod web;
mod zone;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::network::NetworkPlan;
use serde::Deserialize;

pub use bond::Bond;
pub use file::{Problems, load};
pub use images::Images;
pub use management::Management;
pub use network::Network;
pub use panel::Panel;
pub use templates::Templates;
pub use upgrade::{Hours, Restart, Upgrade};
pub use web::Web;
pub use zone::{names as zones, zone};

/// Where machines get boot files, scripts, images and metadata.
pub const HTTP_PORT: u16 = dhcp::DEFAULT_HTTP_PORT;

/// Everything `tinboxd` can be told.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the box is called: in `NAME.local`, on its panel, for DHCP servers. Without one it has
    /// a name by its first network card.
    pub name: Option<String>,
    /// Who tells it the time.
    #[serde(default)]
    pub time: Time,
    /// Updates of its system.
    #[serde(default)]
    pub upgrade: Upgrade,
    /// The racks' networks, one for each interface, as they are written: `[network]`, or
    /// `[[network]]` for several.
    #[serde(default, deserialize_with = "network::one_or_more")]
    pub network: Vec<Network>,
    /// The same, read. The first one's address is the box's own, for the API and in kubeconfigs.
    #[serde(skip)]
    pub networks: Vec<NetworkPlan>,
    /// How the box's owner reaches it: an interface each. Those that are named nowhere get an
    /// address by DHCP. Only for the box itself, whose network nobody else configures.
    #[serde(default, deserialize_with = "network::one_or_more")]
    pub management: Vec<Management>,
    /// What machines boot.
    #[serde(default)]
    pub boot: Boot,
    /// The API.
    #[serde(default)]
    pub api: Api,
    /// The agents.
    #[serde(default)]
    pub agents: Agents,
    /// What templates may read.
    #[serde(default)]
    pub templates: Templates,
    /// The management controllers.
    #[serde(default)]
    pub bmc: Bmc,
    /// Files of other servers; without it, machines fetch them themselves.
    pub images: Option<Images>,
    /// The pages for people, beside somebody's own system; a box of its own always has them.
    pub web: Option<Web>,
    /// The box's own small screen, buttons and lights. Only for the box itself.
    pub panel: Option<Panel>,
    /// What machines are told about themselves.
    #[serde(default)]
    pub metadata: metadata::Config,
}

/// Whether this can be one part of a host's name (RFC 1123 section 2.1).
fn is_label(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=63).contains(&name.len())
        && name.chars().all(good)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The box's own clock. Only for the box itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Time {
    /// Names or addresses of NTP servers. Left out, the box asks those that its DHCP server names,
    /// and public ones when it names none; with an empty list it asks nobody outside.
    pub servers: Option<Vec<String>>,
    /// The zone that people read times in, as the world's database names it: `Europe/Berlin`. Left
    /// out, it is UTC.
    pub zone: Option<String>,
}

/// What machines boot.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Folder with `ipxe/`, `agent/` and `images/`; on the box itself what came with it.
    #[serde(default = "artifacts")]
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
    /// Make workflows by WorkflowRuleSets for machines whose agents report and have none: those
    /// that nobody registered, and those whose Hardware allows it.
    pub enrollment: bool,
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
    /// Between two readings of a machine's power state.
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

/// Where this program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// On somebody's Linux, whose network is not ours.
    Guest,
    /// On a box of its own, which has every default and may have no file yet.
    Firmware,
}

/// The computer that reads a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    /// The computer that the configuration is for: its folders and files must exist.
    Own,
    /// Another computer: paths are not looked up.
    Foreign,
}

impl Config {
    /// Reads a text, and checks all of it.
    ///
    /// # Errors
    /// Every mistake: what the format itself does not allow stops at the first, which has a line;
    /// everything else has the key that it is about in front.
    pub fn read(text: &str, home: Home) -> Result<Self, Vec<String>> {
        Self::read_with(text, home, Disk::Own)
    }

    fn read_with(text: &str, home: Home, disk: Disk) -> Result<Self, Vec<String>> {
        // Editors that write a byte order mark are those on the laptops that write the card.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut config: Self = toml::from_str(text).map_err(|error| vec![error.to_string()])?;
        let networks = network::plans(&config.network);
        let mut problems = networks.as_ref().err().cloned().unwrap_or_default();
        if let (Home::Firmware, Some(images)) = (home, &mut config.images)
            && images.cache.as_os_str().is_empty()
        {
            images.cache = Images::folder(Path::new(platform::init::CACHE));
        }
        problems.extend(config.problems(disk));
        problems.extend(config.problems_at(home));
        if home == Home::Firmware && config.images.is_none() {
            config.images = Some(Images::in_folder(Path::new(platform::init::CACHE)));
        }
        config.networks = networks.unwrap_or_default();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// The box's before anybody has said a word: it serves nobody.
    pub fn untold() -> Self {
        let images = Some(Images::in_folder(Path::new(platform::init::CACHE)));
        Self { images, ..Self::default() }
    }

    /// What is wrong for where this program runs.
    fn problems_at(&self, home: Home) -> Vec<String> {
        match home {
            Home::Guest => {
                let none = self.network.is_empty();
                let mut problems = Vec::new();
                problems.extend(none.then(|| "network: there must be one".to_owned()));
                problems.extend(network::without_address(&self.network));
                for (key, there) in [
                    ("management", !self.management.is_empty()),
                    ("name", self.name.is_some()),
                    ("time", self.time.servers.is_some() || self.time.zone.is_some()),
                    ("panel", self.panel.is_some()),
                    ("network.bond", self.network.iter().any(|it| it.bond.is_some())),
                    ("upgrade", self.upgrade != Upgrade::default()),
                ] {
                    problems.extend(there.then(|| {
                        format!(
                            "{key}: that is for this machine's own system to say; only a box that \
                             was flashed takes it"
                        )
                    }));
                }
                problems
            }
            Home::Firmware => {
                let mut problems = management::problems(&self.management, &self.network);
                let interfaces = bond::interfaces(&self.management, &self.network);
                problems.extend(bond::problems(&interfaces));
                problems.extend(self.web.iter().map(|_| web::NOT_HERE.to_owned()));
                problems.extend(self.panel.iter().flat_map(Panel::problems));
                problems.extend(self.time.zone.as_deref().and_then(zone::problem));
                problems.extend(self.upgrade.problems());
                let named = self.name.as_deref().filter(|name| !is_label(name));
                problems.extend(named.map(|name| {
                    format!(
                        "name: {name:?} is no name of a machine: up to 63 letters, digits and \
                         hyphens, none of these at either end"
                    )
                }));
                problems
            }
        }
    }

    /// The interfaces that are made of several cards.
    pub fn bonds(&self) -> Vec<platform::net::Bond> {
        bond::bonds(&bond::interfaces(&self.management, &self.network))
    }

    /// What is wrong beside the networks.
    fn problems(&self, disk: Disk) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |good: bool, problem: String| {
            if !good {
                problems.push(problem);
            }
        };
        let folder = &self.boot.artifacts;
        let exists = disk == Disk::Foreign || folder.is_dir();
        check(exists, format!("boot.artifacts: {} is no folder", folder.display()));
        for (key, secs, from, to) in [
            ("agents.silence_secs", self.agents.silence_secs, 20, 3600),
            ("agents.boot_secs", self.agents.boot_secs, 30, 7200),
            ("bmc.poll_secs", self.bmc.poll_secs, 1, 86_400),
        ] {
            let good = (from..=to).contains(&secs);
            check(good, format!("{key}: {secs} s is not between {from} s and {to} s"));
        }
        problems.extend(self.images.iter().flat_map(|images| images.problems(disk)));
        problems.extend(self.metadata.problems());
        problems.extend(self.templates.problems());
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
        names.extend(self.web.iter().filter_map(Web::name));
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
mod tests;
