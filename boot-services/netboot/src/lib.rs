//! Serves the files that a machine's firmware fetches before an operating system runs: the boot
//! loader by TFTP or HTTP, the iPXE script, the agent's kernel and initramfs, and disk images.
//!
//! This crate must never: decide what a machine should boot (implementations of [`Plans`] do, which
//! know the workflows), write to a disk, or keep more of a file in memory than its named limits.
//!
//! Enter at [`tftp::bind`] and [`tftp::serve`] for UDP, [`http::router`] and [`http::serve`] for
//! TCP, [`script::render`] for the iPXE scripts.

pub mod assemble;
mod error;
mod events;
pub mod files;
pub mod http;
pub mod iso;
pub mod loader;
mod plan;
pub mod script;
pub mod tftp;

pub use error::Error;
pub use events::{FetchEvent, Observer, Outcome};
pub use files::Files;
pub use loader::fallback;
pub use plan::{AgentBoot, Boot, Ipam, Medium, Owner, Plan, Plans, Reader};

use std::net::IpAddr;
use std::sync::Arc;

use stdx::MacAddr;

/// Dependencies that every server of this crate needs. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    /// Artifact directory that the files are served from.
    pub files: Files,
    /// Source of the machines' boot plans.
    pub plans: Arc<dyn Plans>,
    /// Receiver of a record of every fetch.
    pub observer: Arc<dyn Observer>,
}

impl Services {
    /// Returns the network identity of the client at this address.
    fn reader(&self, peer: IpAddr) -> Reader {
        Reader { address: peer, neighbor: self.plans.neighbor(peer) }
    }

    /// Returns true if a client may have a loader. Only a known machine without permission to
    /// netboot is refused. `owner` is the machine in the file name; without it, `peer` identifies
    /// the machine.
    fn may_netboot(&self, owner: Option<MacAddr>, peer: IpAddr) -> bool {
        let plan = match owner {
            Some(mac) => self.plans.by_mac(mac),
            None => self.plans.by_address(peer),
        };
        plan.is_none_or(|plan| plan.boot != Boot::NotAllowed)
    }
}
