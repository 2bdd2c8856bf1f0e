//! Machine that a management controller belongs to, with the reason.

use serde::{Deserialize, Serialize};

use crate::DiscoveredBmc;

/// Facts about a known machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownMachine {
    /// Namespace of the Hardware.
    pub namespace: String,
    /// Name of the Hardware.
    pub name: String,
    /// UUID by SMBIOS, in lower case; empty if unknown.
    pub uuid: String,
    /// MAC addresses, in lower case.
    pub macs: Vec<String>,
    /// True if the Hardware already names a BMC.
    pub has_bmc: bool,
}

/// Machine that a management controller belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerMatch {
    /// Namespace of the Hardware.
    pub namespace: String,
    /// Name of the Hardware.
    pub name: String,
    /// Reason, as a sentence.
    pub reason: String,
    /// True if the Hardware already names a BMC.
    pub has_bmc: bool,
}

/// Returns the machine of a management controller. If two machines have
/// the same evidence, such as a cloned UUID, the function returns `None`.
pub fn owner(bmc: &DiscoveredBmc, machines: &[KnownMachine]) -> Option<OwnerMatch> {
    let by_uuid = |it: &&KnownMachine| !it.uuid.is_empty() && bmc.uuids.contains(&it.uuid);
    let by_mac = |it: &&KnownMachine| !bmc.mac.is_empty() && it.macs.contains(&bmc.mac);
    let found = |machine: &KnownMachine, reason: String| OwnerMatch {
        namespace: machine.namespace.clone(),
        name: machine.name.clone(),
        reason,
        has_bmc: machine.has_bmc,
    };
    if let Some(machine) = only(machines.iter().filter(by_uuid)) {
        return Some(found(machine, format!("both have the UUID {}", machine.uuid)));
    }
    let machine = only(machines.iter().filter(by_mac))?;
    let reason = format!("it answers at the MAC {} of this machine", bmc.mac);
    Some(found(machine, reason))
}

fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{KnownMachine, owner};
    use crate::{DiscoveredBmc, ProtocolKind};

    fn machine(name: &str, uuid: &str, mac: &str) -> KnownMachine {
        KnownMachine {
            namespace: "default".into(),
            name: name.into(),
            uuid: uuid.into(),
            macs: vec![mac.into()],
            has_bmc: false,
        }
    }

    #[test]
    fn the_uuid_goes_before_the_mac() {
        let bmc = DiscoveredBmc {
            address: [10, 0, 0, 9].into(),
            mac: "52:54:00:00:00:02".into(),
            protocols: vec![ProtocolKind::Ipmi],
            uuids: vec!["a".into(), "b".into()],
            description: String::new(),
        };
        let one = machine("nuc1", "b", "52:54:00:00:00:01");
        let two = machine("nuc2", "c", "52:54:00:00:00:02");
        let of = |machines: &[_]| owner(&bmc, machines).map(|it| (it.name, it.reason));
        let by_uuid = ("nuc1".to_owned(), "both have the UUID b".to_owned());
        assert_eq!(of(&[two.clone(), one.clone()]), Some(by_uuid));
        let by_mac = "it answers at the MAC 52:54:00:00:00:02 of this machine".to_owned();
        assert_eq!(of(std::slice::from_ref(&two)), Some(("nuc2".to_owned(), by_mac)));
        assert_eq!(of(&[machine("nuc3", "", "")]), None);
        assert_eq!(of(&[one.clone(), machine("copy", "b", "x")]), None, "cloned UUIDs");
    }
}
