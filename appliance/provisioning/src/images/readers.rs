//! Access check for cached files. A machine may read a file if one of its unfinished workflows
//! mentions the file.

use std::net::IpAddr;
use std::sync::Arc;

use api::tinkerbell::Hardware;
use artifact_cache::{Readers, RemoteFile};
use stdx::MacAddr;

use super::{Inner, Mention};
use crate::index::Index;

/// Access check by the machine of an address and the files that its workflows mention.
pub struct MentionReaders {
    images: Arc<Inner>,
    index: Index,
}

impl MentionReaders {
    /// Creates a check for the files of `images` and the machines of `index`.
    pub fn new(images: Arc<Inner>, index: Index) -> Self {
        Self { images, index }
    }
}

impl Readers for MentionReaders {
    fn may_read(&self, peer: IpAddr, wanted: &RemoteFile) -> bool {
        let neighbor = self.index.neighbor(peer);
        // On a local link the hardware address decides, as for boot scripts.
        let machine = match neighbor {
            Some(mac) => self.index.by_mac(mac),
            None => self.index.by_address(peer),
        };
        let mentions = self.images.mentions();
        let mut needing = mentions.values().filter(|mention| mention.needed().contains(wanted));
        needing.any(|mention| is_of(mention, machine.as_deref(), neighbor, &self.index))
    }
}

/// Returns true if the workflow of `mention`, or one of its tasks, is for the machine.
fn is_of(
    mention: &Mention,
    machine: Option<&Hardware>,
    neighbor: Option<MacAddr>,
    index: &Index,
) -> bool {
    let is_machine = |agent: &String| {
        // An agent without a Hardware is identified by its agent ID, which is its MAC address.
        let of_agent = index.by_agent(agent);
        match (of_agent, machine) {
            (Some(other), Some(machine)) => other.key() == machine.key(),
            _ => neighbor.is_some_and(|mac| agent.parse() == Ok(mac)),
        }
    };
    machine.is_some_and(|machine| machine.key() == mention.machine)
        || mention.agents.iter().any(is_machine)
}
