//! What a machine's firmware fetches before it has an operating system: the boot loader by TFTP or
//! HTTP, the iPXE script, the agent's kernel and initramfs, and disk images.
//!
//! Must never: decide what a machine should boot (that is [`Plans`], answered by whoever knows the
//! workflows), write to a disk, or keep more of a file in memory than its named limits say.
//!
//! Enter at [`tftp::bind`] and [`tftp::serve`] for UDP, [`http::router`] and [`http::serve`] for
//! TCP, [`script::render`] for what iPXE is told to do.

pub mod assemble;
mod error;
pub mod fallback;
pub mod files;
pub mod http;
pub mod iso;
pub mod loader;
mod plan;
pub mod pxelinux;
mod reader;
pub mod script;
mod seen;
pub mod tftp;
mod udp;

pub use error::Error;
pub use files::Files;
pub use plan::{AgentBoot, Boot, Medium, Owner, Plan, Plans};
pub use reader::Reader;
pub use seen::{Fetched, Observer, Outcome};

use std::net::IpAddr;
use std::sync::Arc;

use stdx::MacAddr;

/// What every server of this crate needs: where the files are, whom to ask, whom to tell.
#[derive(Clone)]
pub struct Services {
    /// The artifact directory.
    pub files: Files,
    /// Knows what each machine should boot.
    pub plans: Arc<dyn Plans>,
    /// Told of everything that was fetched.
    pub observer: Arc<dyn Observer>,
}

impl Services {
    /// Who asks from this address.
    fn reader(&self, peer: IpAddr) -> Reader {
        Reader { address: peer, neighbour: self.plans.neighbour(peer) }
    }

    /// Whether who asks may have a loader: nobody is refused but a machine that is known and not
    /// allowed to netboot. `owner`: whom the name is for, when it says; else the address tells.
    fn may_netboot(&self, owner: Option<MacAddr>, peer: IpAddr) -> bool {
        let plan = match owner {
            Some(mac) => self.plans.by_mac(mac),
            None => self.plans.by_address(peer),
        };
        plan.is_none_or(|plan| plan.boot != Boot::NotAllowed)
    }
}
