//! Hardware that a request names by `hardwareName` or `providerID`.

use api::meta::ObjectKey;
use api::tinkerbell::Hardware;

use super::HardwareRequest;

/// Scheme of the provider IDs of Tinkerbell.
pub(super) const SCHEME: &str = "tinkerbell://";

/// Error in the name of a requested Hardware.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The provider ID has another form.
    #[error("spec.providerID: expected {SCHEME}NAMESPACE/NAME, found {0:?}")]
    ProviderId(String),
    /// The Hardware does not exist.
    #[error("{field} names the Hardware {name}, which does not exist")]
    Missing {
        /// Field with the name.
        field: &'static str,
        /// Name or key of the Hardware.
        name: String,
    },
    /// Several Hardware have the name, none of them in the namespace of the machine.
    #[error("{field} names {count} Hardware: {name} exists in several namespaces")]
    Ambiguous {
        /// Field with the name.
        field: &'static str,
        /// Name of the Hardware.
        name: String,
        /// Number of Hardware with this name.
        count: usize,
    },
    /// The two fields name different Hardware.
    #[error("spec.providerID names the Hardware {by_id}, but spec.hardwareName is {name}")]
    Differ {
        /// Key of the Hardware in the provider ID.
        by_id: ObjectKey,
        /// Value of the field `hardwareName`.
        name: String,
    },
}

/// Returns the Hardware with the requested name. `providerID` takes precedence, because its form
/// has a namespace.
pub fn named<'a>(
    wanted: &HardwareRequest,
    hosts: &[&'a Hardware],
) -> Result<&'a Hardware, NameError> {
    let name = &wanted.hardware_name;
    if wanted.provider_id.is_empty() {
        return by_name(wanted, name, "spec.hardwareName", hosts);
    }
    let field = "spec.providerID";
    let host = match parse(&wanted.provider_id)? {
        (Some(namespace), id) => {
            let key = ObjectKey::new(namespace, id);
            let found = hosts.iter().find(|host| host.key() == key);
            found.copied().ok_or_else(|| NameError::Missing { field, name: key.to_string() })?
        }
        (None, id) => by_name(wanted, id, field, hosts)?,
    };
    if !name.is_empty() && *name != host.metadata.name {
        return Err(NameError::Differ { by_id: host.key(), name: name.clone() });
    }
    Ok(host)
}

/// Returns true if `provider_id` names the Hardware `host`.
pub fn is_id_of(provider_id: &str, host: &ObjectKey) -> bool {
    parse(provider_id).is_ok_and(|(namespace, name)| {
        name == host.name && namespace.is_none_or(|namespace| namespace == host.namespace)
    })
}

/// Splits a provider ID into namespace and name. The old form has only a name.
fn parse(provider_id: &str) -> Result<(Option<&str>, &str), NameError> {
    let error = || NameError::ProviderId(status::plain(provider_id));
    let path = provider_id.strip_prefix(SCHEME).ok_or_else(error)?;
    let (namespace, name) = match path.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, path),
    };
    let is_valid = !name.is_empty() && !name.contains('/') && namespace != Some("");
    if is_valid { Ok((namespace, name)) } else { Err(error()) }
}

/// Returns the Hardware `name`: the one in the machine's namespace, else the only one.
fn by_name<'a>(
    wanted: &HardwareRequest,
    name: &str,
    field: &'static str,
    hosts: &[&'a Hardware],
) -> Result<&'a Hardware, NameError> {
    let all: Vec<&Hardware> =
        hosts.iter().filter(|host| host.metadata.name == name).copied().collect();
    let is_near = |host: &&&Hardware| host.metadata.namespace == wanted.machine.namespace;
    match (all.iter().find(is_near), &all[..]) {
        (Some(host), _) | (None, [host]) => Ok(host),
        (None, []) => Err(NameError::Missing { field, name: status::plain(name) }),
        (None, several) => {
            Err(NameError::Ambiguous { field, name: status::plain(name), count: several.len() })
        }
    }
}
