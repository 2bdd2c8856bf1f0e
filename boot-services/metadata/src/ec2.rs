//! The EC2 tree as a value: a machine and a path in, text out.
//!
//! Names, their order, the slash behind folders and the missing line end are those of Tootles
//! (`tootles/internal/frontend/ec2`), of which every route is here. Beyond it: public keys in EC2's
//! own shape, and the network folder in the versions of the interface that have it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use crate::{Instance, Network};

/// A version of the interface: a date, or `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    network: bool,
}

/// EC2 has `network/interfaces` since this version.
const NETWORK_SINCE: &str = "2011-01-01";
/// The first version; Tootles' and cloud-init's lowest.
const FIRST: &str = "2009-04-04";

impl Version {
    /// Reads the first component of a path.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self { network: true });
        }
        // Dates of this form compare as text does.
        (is_date(text) && text >= FIRST).then(|| Self { network: text >= NETWORK_SINCE })
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// What stands at `path` below the version, slashes at either end aside: a leaf's text, or a
/// folder's list. `None`: nothing.
pub(crate) fn lookup(instance: &Instance, version: Version, path: &str) -> Option<String> {
    let leaves = leaves(instance, version);
    let path = path.trim_matches('/');
    if let Some(text) = leaves.get(path) {
        return Some(text.clone().into_owned());
    }
    if path == "meta-data/public-keys" {
        // EC2 lists keys as index=name and has the folder `index/` behind it; the names differ,
        // because cloud-init puts them in a map.
        let keys = 0..instance.public_keys.len();
        let names: Vec<String> = keys.map(|index| format!("{index}=key-{index}")).collect();
        return (!names.is_empty()).then(|| names.join("\n"));
    }
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let below = leaves.keys().filter_map(|leaf| leaf.strip_prefix(prefix.as_str()));
    let names: BTreeSet<&str> =
        below.map(|rest| rest.split_inclusive('/').next().unwrap_or(rest)).collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join("\n"))
}

type Leaves<'a> = BTreeMap<String, Cow<'a, str>>;

fn leaves(instance: &Instance, version: Version) -> Leaves<'_> {
    let mut leaves = Leaves::new();
    let user_data = instance.user_data.as_ref().map_or("", |data| data.expose());
    leaves.insert("user-data".to_owned(), user_data.into());
    let address = |address: Option<String>| address.unwrap_or_default();
    let local = instance.local_ipv4();
    let system = &instance.operating_system;
    let mut say = |name: &str, value: Cow<'_, str>| {
        leaves.insert(format!("meta-data/{name}"), value.into_owned().into());
    };
    say("instance-id", instance.id.as_str().into());
    say("hostname", instance.hostname.as_str().into());
    say("local-hostname", instance.hostname.as_str().into());
    say("plan", instance.plan.as_str().into());
    say("facility", instance.facility.as_str().into());
    say("tags", instance.tags.join("\n").into());
    say("public-ipv4", address(instance.public_ipv4.map(|a| a.to_string())).into());
    say("public-ipv6", address(instance.public_ipv6.map(|a| a.to_string())).into());
    say("local-ipv4", address(local.map(|a| a.to_string())).into());
    say("operating-system/slug", system.slug.as_str().into());
    say("operating-system/distro", system.distro.as_str().into());
    say("operating-system/version", system.version.as_str().into());
    say("operating-system/image_tag", system.image_tag.as_str().into());
    // Two routes that Tootles has and never fills.
    say("operating-system/license_activation/state", "".into());
    say("iqn", "".into());
    if instance.public_keys.is_empty() {
        say("public-keys", "".into());
    }
    for (index, key) in instance.public_keys.iter().enumerate() {
        say(&format!("public-keys/{index}/openssh-key"), key.as_str().into());
    }
    if let Some(network) = instance.network.as_ref().filter(|_| version.network) {
        interface(network, &instance.hostname, say);
    }
    leaves
}

/// What EC2 says about an interface, as far as it is known here.
fn interface(network: &Network, hostname: &str, mut say: impl FnMut(&str, Cow<'_, str>)) {
    let mac = network.mac.to_string();
    say("mac", mac.as_str().into());
    let mut of = |name: &str, value: String| {
        say(&format!("network/interfaces/macs/{mac}/{name}"), value.into());
    };
    of("device-number", "0".to_owned());
    of("local-hostname", hostname.to_owned());
    of("local-ipv4s", network.address.to_string());
    of("mac", mac.clone());
    let prefix = network.prefix.min(32);
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    let subnet = Ipv4Addr::from_bits(network.address.to_bits() & mask);
    of("subnet-ipv4-cidr-block", format!("{subnet}/{prefix}"));
}

#[cfg(test)]
pub(crate) mod tests;
