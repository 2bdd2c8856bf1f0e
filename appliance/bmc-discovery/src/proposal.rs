//! Result of a discovery: each management controller with its machine and the YAML to accept it.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::{DiscoveredBmc, KnownMachine, OwnerMatch, manifest, owner};

/// Management controller with its machine, and the YAML that accepts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// Management controller that answered.
    pub bmc: DiscoveredBmc,
    /// Machine of the management controller; `None` if no evidence names one.
    pub owner: Option<OwnerMatch>,
    /// Name of the Machine of `bmc.tinkerbell.org` that already has this address; empty without.
    pub accepted: String,
    /// Objects that accept the management controller, as YAML.
    pub manifest: String,
}

impl Proposal {
    /// Returns the proposals for all management controllers. `accepted` returns the name of the
    /// Machine with an address.
    pub fn all(
        bmcs: Vec<DiscoveredBmc>,
        machines: &[KnownMachine],
        accepted: impl Fn(Ipv4Addr) -> Option<String>,
    ) -> Vec<Self> {
        let proposal = |bmc: DiscoveredBmc| {
            let owner = owner(&bmc, machines);
            let accepted = accepted(bmc.address).unwrap_or_default();
            Self { manifest: manifest(&bmc, owner.as_ref()), owner, accepted, bmc }
        };
        bmcs.into_iter().map(proposal).collect()
    }
}
