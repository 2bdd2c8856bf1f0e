//! Provider ID, which connects a Node to its Hardware: `tinkerbell://NAMESPACE/NAME`.

use std::fmt;
use std::str::FromStr;

use api::meta::ObjectKey;

use super::InstallError;

const SCHEME: &str = "tinkerbell://";
/// Maximum length of a namespace (RFC 1123 label) and of a name (RFC 1123 subdomain), in bytes.
const NAMESPACE_BYTES_MAX: usize = 63;
const NAME_BYTES_MAX: usize = 253;

/// Provider ID of a Hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderId {
    /// Namespace of the Hardware; `None` in the short form `tinkerbell://NAME`.
    pub namespace: Option<String>,
    /// Name of the Hardware.
    pub name: String,
}

impl ProviderId {
    /// Creates the provider ID of a Hardware.
    pub fn new(hardware: &ObjectKey) -> Self {
        Self { namespace: Some(hardware.namespace.clone()), name: hardware.name.clone() }
    }

    /// Returns true for a provider ID of `hardware`. The short form fits every namespace.
    pub fn fits(&self, hardware: &ObjectKey) -> bool {
        self.name == hardware.name
            && self.namespace.as_ref().is_none_or(|it| *it == hardware.namespace)
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{SCHEME}{namespace}/{}", self.name),
            None => write!(f, "{SCHEME}{}", self.name),
        }
    }
}

/// Parses `tinkerbell://NAMESPACE/NAME` and `tinkerbell://NAME`.
impl FromStr for ProviderId {
    type Err = InstallError;

    fn from_str(text: &str) -> Result<Self, InstallError> {
        let refused = || {
            // The API permits 512 bytes in this field; a longer text comes from another source.
            InstallError::ProviderId(text.chars().take(512).collect())
        };
        let path = text.strip_prefix(SCHEME).ok_or_else(refused)?;
        let (namespace, name) = match path.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, path),
        };
        let namespace_ok =
            namespace.is_none_or(|it| it.len() <= NAMESPACE_BYTES_MAX && is_label(it));
        let name_ok = name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label);
        match namespace_ok && name_ok {
            true => Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() }),
            false => Err(refused()),
        }
    }
}

/// Returns true for a part of a DNS name: lower-case letters, digits, and inner dashes.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use api::meta::ObjectKey;

    use super::ProviderId;

    #[test]
    fn both_forms_are_read() {
        let long: ProviderId = "tinkerbell://rack-1/nuc1.lab".parse().unwrap();
        assert_eq!(long, ProviderId::new(&ObjectKey::new("rack-1", "nuc1.lab")));
        assert_eq!(long.to_string(), "tinkerbell://rack-1/nuc1.lab");
        assert!(long.fits(&ObjectKey::new("rack-1", "nuc1.lab")));
        assert!(!long.fits(&ObjectKey::new("rack-2", "nuc1.lab")));
        // The identifier in the tutorial of the product's first users.
        let short: ProviderId = "tinkerbell://nuc-control-plane-1".parse().unwrap();
        assert_eq!((short.namespace.as_deref(), &*short.name), (None, "nuc-control-plane-1"));
        assert_eq!(short.to_string(), "tinkerbell://nuc-control-plane-1");
        assert!(short.fits(&ObjectKey::new("default", "nuc-control-plane-1")));
    }

    #[test]
    fn other_texts_are_refused() {
        let label = "a".repeat(64);
        let name = "a.".repeat(127);
        for text in [
            "",
            "nuc1",
            "tinkerbell:/nuc1",
            "tinkerbell://",
            "tinkerbell:///nuc1",
            "tinkerbell://default/",
            "tinkerbell://a/b/c",
            "tinkerbell://Default/nuc1",
            "tinkerbell://a.b/nuc1",
            "tinkerbell://a/nuc_1",
            "tinkerbell://a/-nuc1",
            "tinkerbell://a/nuc1 ",
            "Tinkerbell://a/nuc1",
            "metal3://a/nuc1",
            &format!("tinkerbell://{label}/nuc1"),
            &format!("tinkerbell://default/{name}"),
        ] {
            let error = text.parse::<ProviderId>().unwrap_err();
            assert_eq!(error.reason(), "ProviderIDInvalid", "{text}");
            let wanted = "expected tinkerbell://NAMESPACE/NAME or tinkerbell://NAME, found";
            assert!(error.to_string().starts_with(wanted), "{error}");
        }
    }
}
