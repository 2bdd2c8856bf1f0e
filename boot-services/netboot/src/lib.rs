//! What a machine's firmware fetches before it has an operating system: the boot loader by TFTP or
//! HTTP, the iPXE script, the agent's kernel and initramfs, and disk images.
//!
//! Must never: decide what a machine should boot (that is [`Plans`], answered by whoever knows the
//! workflows), write to a disk, or keep more of a file in memory than its named limits say.
//!
//! Enter at [`tftp::bind`] and [`tftp::serve`] for UDP, [`http::router`] and [`http::serve`] for
//! TCP, [`script::render`] for what iPXE is told to do.

mod error;
pub mod files;
pub mod http;
pub mod loader;
mod plan;
pub mod script;
mod seen;
pub mod tftp;

pub use error::Error;
pub use files::Files;
pub use plan::{AgentBoot, Boot, Plan, Plans};
pub use seen::{Fetched, Observer, Outcome};

use std::sync::Arc;

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
