//! The EC2 tree without HTTP: a machine and a path go in, text comes out.
//!
//! The first version is Tinkerbell's, unchanged ([`tootles`]). Later versions, which cloud-init
//! prefers, have the same data and more: always an id and a host name, public keys in EC2's own
//! form, the interfaces (since [`NETWORK_SINCE`]), and the keys that templates for `{{
//! ds.meta_data.… }}` expect.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::{Instance, Interface};

mod tootles;

/// Version of the EC2 tree: a date, or `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// The version of Tinkerbell, [`FIRST`].
    First,
    /// Any version after [`FIRST`]; the data are the same except for `network`.
    Later {
        /// True if the version has `network/interfaces`.
        network: bool,
    },
}

/// First version of EC2 that has `network/interfaces`.
const NETWORK_SINCE: &str = "2011-01-01";
/// First version: the only one of Tootles, and the lowest one of cloud-init.
pub(crate) const FIRST: &str = "2009-04-04";

impl Version {
    /// Parses the first component of a path; `None` if it is not a version.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text {
            "latest" => Some(Self::Later { network: true }),
            FIRST => Some(Self::First),
            // Dates of this form compare as text does.
            _ if is_date(text) && text > FIRST => {
                Some(Self::Later { network: text >= NETWORK_SINCE })
            }
            _ => None,
        }
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Returns the content at `path` below the version, without a slash at its end: the text of a leaf,
/// or the list of a folder. `None`: the path does not exist.
pub(crate) fn lookup(instance: &Instance, version: Version, path: &str) -> Option<String> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let Version::Later { network } = version else { return tootles::lookup(instance, path) };
    let keys = instance.public_keys.len();
    if path == "meta-data/public-keys" && keys > 0 {
        // EC2 lists keys as index=name and has the folder `index/` behind it; the names differ,
        // because cloud-init puts them in a map.
        let names: Vec<String> = (0..keys).map(|index| format!("{index}=key-{index}")).collect();
        return Some(names.join("\n"));
    }
    let mut leaves = leaves(instance, network);
    match leaves.remove(path) {
        Some(text) => Some(text.into_owned()),
        None => listing(leaves.keys().map(|name| name.as_ref()), path),
    }
}

/// Returns the list of the folder `path` in Tootles' form: sorted names, a slash after names of
/// folders, no line end. `None`: no leaf is below the folder.
pub(crate) fn listing<'a>(leaves: impl Iterator<Item = &'a str>, path: &str) -> Option<String> {
    let below = leaves.filter_map(|leaf| match path {
        "" => Some(leaf),
        _ => leaf.strip_prefix(path)?.strip_prefix('/'),
    });
    let names: BTreeSet<&str> =
        below.map(|rest| rest.split_inclusive('/').next().unwrap_or(rest)).collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join("\n"))
}

type Leaves<'a> = BTreeMap<Cow<'static, str>, Cow<'a, str>>;

fn leaves(instance: &Instance, network: bool) -> Leaves<'_> {
    let mut leaves = Leaves::new();
    let tinkerbells = tootles::LEAVES.iter().map(|(name, text)| ((*name).into(), text(instance)));
    leaves.extend(tinkerbells);
    let mut add = |name: Cow<'static, str>, value: Cow<'_, str>| {
        leaves.insert(format!("meta-data/{name}").into(), value.into_owned().into());
    };
    add("instance-id".into(), instance.id().into());
    add("hostname".into(), instance.hostname().into());
    add("local-hostname".into(), instance.hostname().into());
    add("local-ipv4".into(), instance.local_ipv4().into());
    add("name".into(), instance.name.as_str().into());
    add("uuid".into(), instance.uuid.as_str().into());
    add("providerid".into(), instance.provider_id.as_str().into());
    add("provider-id".into(), instance.provider_id.as_str().into());
    for (index, key) in instance.public_keys.iter().enumerate() {
        add(format!("public-keys/{index}/openssh-key").into(), key.as_str().into());
    }
    if network {
        if let Some(interface) = instance.interfaces.first() {
            add("mac".into(), interface.mac.to_string().into());
        }
        for (number, interface) in instance.interfaces.iter().enumerate() {
            self::interface(interface, number, instance.hostname(), &mut add);
        }
    }
    if !instance.public_keys.is_empty() {
        leaves.remove("meta-data/public-keys");
    }
    let own = listing(leaves.keys().map(|name| name.as_ref()), "meta-data").unwrap_or_default();
    let is_own = |name: &str| own.lines().any(|taken| taken.trim_end_matches('/') == name);
    for (name, value) in instance.extra.iter().filter(|(name, _)| !is_own(name)) {
        leaves.insert(format!("meta-data/{name}").into(), value.into());
    }
    leaves
}

/// Returns EC2's keys and values for an interface, as far as the data are known.
fn interface(
    interface: &Interface,
    number: usize,
    hostname: &str,
    add: &mut impl FnMut(Cow<'static, str>, Cow<'_, str>),
) {
    let mac = interface.mac.to_string();
    let mut of = |name: &str, value: String| {
        add(format!("network/interfaces/macs/{mac}/{name}").into(), value.into());
    };
    of("mac", interface.mac.to_string());
    of("device-number", number.to_string());
    of("local-hostname", hostname.to_owned());
    let Some(address) = interface.address else { return };
    let (list, subnet) = match address.addr() {
        IpAddr::V4(_) => ("local-ipv4s", "subnet-ipv4-cidr-block"),
        IpAddr::V6(_) => ("ipv6s", "subnet-ipv6-cidr-blocks"),
    };
    of(list, address.addr().to_string());
    of(subnet, address.trunc().to_string());
}

#[cfg(test)]
pub(crate) mod tests;
