//! Checks of the form's fields. All mistakes are reported at once.

use std::net::Ipv4Addr;

use api::network::{Mode, NetworkPlan, SubnetPlan};

use super::plan::Target;
use super::{InstallForm, USER_DATA_BYTES_MAX, address};
use crate::error::{ActionError, FieldError};

/// Maximum length of a name in characters: that of a label in the DNS (RFC 1035).
const NAME_CHARS_MAX: usize = 63;
/// Address of a new machine with the settings of its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reservation {
    pub address: Ipv4Addr,
    pub netmask: Ipv4Addr,
    pub gateway: Option<Ipv4Addr>,
    pub name_servers: Vec<Ipv4Addr>,
}

/// Valid fields of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    pub name: String,
    /// Device path; empty if the form installs nothing.
    pub disk: String,
    /// Reserved address; `None` for a known machine, or for an address of the pool.
    pub reservation: Option<Reservation>,
    pub ssh_keys: Vec<String>,
    /// User data; `None` leaves that of the Hardware.
    pub user_data: Option<String>,
}

/// Mistakes found so far.
#[derive(Default)]
struct Mistakes(Vec<FieldError>);

impl Mistakes {
    fn add(&mut self, field: &'static str, why: String) {
        self.0.push(FieldError { field, why });
    }
}

impl Checked {
    /// Checks a form. `installs` is false for a form that only adds the machine.
    ///
    /// # Errors
    /// Fields are not valid; the error has all of them.
    pub fn new(
        form: &InstallForm,
        target: &Target,
        networks: &[NetworkPlan],
        installs: bool,
    ) -> Result<Self, ActionError> {
        let mut mistakes = Mistakes::default();
        let name = match target.fixed_name() {
            Some(name) => name.to_owned(),
            None => name(form.name.trim(), &mut mistakes),
        };
        let disk = if installs { disk(form.disk.trim(), &mut mistakes) } else { String::new() };
        let reservation = match target {
            Target::New { .. } => reservation(form.address.trim(), networks, &mut mistakes),
            Target::Known(_) => None,
        };
        let ssh_keys = ssh_keys(&form.ssh_keys, &mut mistakes);
        let user_data = user_data(&form.user_data, &mut mistakes);
        if mistakes.0.is_empty() {
            return Ok(Self { name, disk, reservation, ssh_keys, user_data });
        }
        Err(ActionError::Fields(mistakes.0))
    }
}

fn name(name: &str, mistakes: &mut Mistakes) -> String {
    let allowed = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let valid = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if !valid {
        let why = format!(
            "{name:?} is not a valid name: expected lower-case letters, digits and hyphens, such \
             as nuc-01."
        );
        mistakes.add("name", why);
    }
    name.to_owned()
}

fn disk(device: &str, mistakes: &mut Mistakes) -> String {
    let allowed = |it: char| it.is_ascii_alphanumeric() || "/-_.:+".contains(it);
    let rest = device.strip_prefix("/dev/");
    if rest.is_none_or(|rest| rest.is_empty() || rest.contains("..") || !rest.chars().all(allowed))
    {
        let why = format!("{device:?} is not a disk: expected a path such as /dev/nvme0n1.");
        mistakes.add("disk", why);
    }
    device.to_owned()
}

fn reservation(
    text: &str,
    networks: &[NetworkPlan],
    mistakes: &mut Mistakes,
) -> Option<Reservation> {
    if networks.is_empty() {
        let why = "This box serves machines on no network: choose a mode on the page Network.";
        mistakes.add("address", why.to_owned());
        return None;
    }
    let serving = address::serving(networks);
    if text.is_empty() {
        if let Some(network) = serving.filter(|it| it.mode == Mode::Reserved) {
            let why = format!(
                "Network {} has no pool: type an address for the machine.",
                network.interface
            );
            mistakes.add("address", why);
        }
        return None;
    }
    let Ok(address) = text.parse::<Ipv4Addr>() else {
        mistakes.add("address", format!("{text:?} is not an IPv4 address such as 10.77.0.11."));
        return None;
    };
    let Some(subnet) = address::subnet_of(networks, address) else {
        let all = networks.iter().flat_map(|it| &it.subnets);
        let all: Vec<String> = all.map(|it| format!("{}/{}", it.network, it.length)).collect();
        let why = format!("{address} is not in a network of this box: {}.", all.join(", "));
        mistakes.add("address", why);
        return None;
    };
    if let Some(why) = unusable(address, subnet, networks) {
        mistakes.add("address", why);
    }
    Some(Reservation {
        address,
        netmask: subnet.netmask(),
        gateway: subnet.gateway,
        name_servers: subnet.name_servers.clone(),
    })
}

/// Returns the reason why no machine can have an address of a network.
fn unusable(address: Ipv4Addr, subnet: &SubnetPlan, networks: &[NetworkPlan]) -> Option<String> {
    let broadcast = subnet.network | !subnet.netmask();
    // Networks of one or two addresses have no broadcast address (RFC 3021).
    if subnet.length < 31 && (address == subnet.network || address == broadcast) {
        return Some(format!("{address} is an address of the network itself."));
    }
    if networks.iter().any(|it| it.address == address) {
        return Some(format!("{address} is the address of this box."));
    }
    (subnet.gateway == Some(address)).then(|| format!("{address} is the address of the router."))
}

fn ssh_keys(text: &str, mistakes: &mut Mistakes) -> Vec<String> {
    public_key::lines(text).unwrap_or_else(|wrong| {
        wrong.iter().for_each(|mistake| mistakes.add("ssh_keys", mistake.to_string()));
        Vec::new()
    })
}

fn user_data(text: &str, mistakes: &mut Mistakes) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    if text.len() > USER_DATA_BYTES_MAX {
        let why =
            format!("The user data has {} bytes; the limit is {USER_DATA_BYTES_MAX}.", text.len());
        mistakes.add("user_data", why);
    }
    // Browsers send line ends as CR LF, and cloud-init reads the CR as part of a value.
    Some(text.replace("\r\n", "\n"))
}
