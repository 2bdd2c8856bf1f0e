//! Machines that may read a file of the cache: those whose unfinished workflows mention it.

use std::net::IpAddr;
use std::sync::Arc;

use api::tinkerbell::Hardware;
use artifact_cache::{Readers, Wanted};
use stdx::MacAddr;

use super::{Inner, Mention};
use crate::index::Index;

/// Finds the machine of an address, and what its workflows mention.
pub struct MentionReaders {
    images: Arc<Inner>,
    index: Index,
}

impl MentionReaders {
    /// Readers of `images` among the machines of `index`.
    pub fn new(images: Arc<Inner>, index: Index) -> Self {
        Self { images, index }
    }
}

impl Readers for MentionReaders {
    fn may_read(&self, peer: IpAddr, wanted: &Wanted) -> bool {
        let neighbor = self.index.neighbour(peer);
        // As for boot scripts: on the link the hardware address decides.
        let machine = match neighbor {
            Some(mac) => self.index.by_mac(mac),
            None => self.index.by_address(peer),
        };
        let mentions = self.images.mentions();
        let mut needing = mentions.values().filter(|mention| mention.needed().contains(wanted));
        needing.any(|mention| is_of(mention, machine.as_deref(), neighbor, &self.index))
    }
}

/// Returns true if the workflow is for this machine or one of its tasks is.
fn is_of(
    mention: &Mention,
    machine: Option<&Hardware>,
    neighbor: Option<MacAddr>,
    index: &Index,
) -> bool {
    let is_machine = |agent: &String| {
        // An agent without a Hardware is known by the MAC that is its id.
        let of_agent = index.by_agent(agent);
        match (of_agent, machine) {
            (Some(other), Some(machine)) => other.key() == machine.key(),
            _ => neighbor.is_some_and(|mac| agent.parse() == Ok(mac)),
        }
    };
    machine.is_some_and(|machine| machine.key() == mention.machine)
        || mention.agents.iter().any(is_machine)
}
