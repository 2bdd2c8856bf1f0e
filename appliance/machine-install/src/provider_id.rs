//! Provider ID, which connects a Node to its Hardware: `tinkerbell://NAMESPACE/NAME`.

use std::fmt;

use api::meta::ObjectKey;

/// Provider ID of a Hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderId {
    hardware: ObjectKey,
}

impl ProviderId {
    /// Creates the provider ID of a Hardware.
    pub fn new(hardware: &ObjectKey) -> Self {
        Self { hardware: hardware.clone() }
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tinkerbell://{}/{}", self.hardware.namespace, self.hardware.name)
    }
}

#[cfg(test)]
mod tests {
    use api::meta::ObjectKey;

    use super::ProviderId;

    #[test]
    fn an_id_has_the_namespace_of_the_hardware() {
        let id = ProviderId::new(&ObjectKey::new("rack-1", "nuc1.lab"));
        assert_eq!(id.to_string(), "tinkerbell://rack-1/nuc1.lab");
    }
}
