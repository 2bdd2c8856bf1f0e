//! Rights that a process gives up at its start and never gets back: capabilities, system calls,
//! writable folders, core dumps. A fault in a parser of unauthenticated input then cannot use these
//! rights.
//!
//! Enter at [`enter`], before the first thread: capabilities and Landlock apply to one thread, and
//! later threads inherit them. [`State::read`] returns the restrictions in force.

mod landlock;
mod seccomp;
mod state;

use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use crate::Error;
pub use state::State;

/// Rights that a process keeps after [`enter`].
#[derive(Debug, Clone)]
pub struct Limits {
    /// Capabilities to keep. A capability that the process does not have is ignored.
    pub capabilities: CapabilitySet,
    /// Folders below which the process may create, write and remove files. A missing folder is
    /// ignored.
    pub writable: Vec<PathBuf>,
    /// Folders and files below which the process may write existing files and use device ioctls.
    pub devices: Vec<PathBuf>,
    /// Programs that may be executed, such as this program itself. An empty list denies `execve`.
    pub programs: Vec<PathBuf>,
}

/// Capabilities of a box that runs as firmware: low ports, raw sockets, network setup and clock.
pub const FIRMWARE: CapabilitySet = CapabilitySet::NET_BIND_SERVICE
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SYS_TIME);
/// Capabilities of a box that runs on another Linux system: low ports and raw sockets.
pub const GUEST: CapabilitySet = CapabilitySet::NET_BIND_SERVICE.union(CapabilitySet::NET_RAW);

/// Landlock version in force for this process, or 0 without Landlock.
static LANDLOCK: OnceLock<u32> = OnceLock::new();

/// Gives up all rights that are not in `limits`, for this thread and all threads that it starts
/// later. Returns the steps that the kernel refused. The remaining steps are in force.
pub fn enter(limits: &Limits) -> Vec<Error> {
    let mut refused = Vec::new();
    let mut attempt = |result: Result<(), Error>| refused.extend(result.err());
    attempt(no_dumps());
    attempt(all_files());
    attempt(keep(limits.capabilities));
    attempt(thread::set_no_new_privs(true).map_err(Error::io("disable new privileges")));
    attempt(landlock::enter(limits).map(|version| {
        // A second call only adds rules, so the version stays.
        let _ = LANDLOCK.set(version);
    }));
    attempt(seccomp::enter(!limits.programs.is_empty()));
    refused
}

/// Disables core dumps, and hides the memory from other processes of the same user.
fn no_dumps() -> Result<(), Error> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(Error::io("hide the memory from other processes"))?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none).map_err(Error::io("disable core dumps"))
}

/// Raises the limit of open files from the default, 1024, to the maximum of the process. Each
/// forwarded connection needs two files.
fn all_files() -> Result<(), Error> {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit { current: maximum, maximum };
    rustix::process::setrlimit(Resource::Nofile, limit).map_err(Error::io("raise the open files"))
}

fn keep(wanted: CapabilitySet) -> Result<(), Error> {
    let own = thread::capabilities(None).map_err(Error::io("read the capabilities"))?;
    // Dropping from the bounding set needs CAP_SETPCAP. A process without it is not root and cannot
    // gain other capabilities.
    if own.effective.contains(CapabilitySet::SETPCAP) {
        for one in CapabilitySet::all().difference(wanted) {
            // A kernel that is older than the capability returns an error for its number.
            if thread::capability_is_in_bounding_set(one) == Ok(true) {
                let what = format!("drop {} for programs", state::names(one));
                thread::remove_capability_from_bounding_set(one).map_err(Error::io(what))?;
            }
        }
    }
    // Kernels before 4.3 have no ambient set.
    let _ = thread::clear_ambient_capability_set();
    let kept = own.permitted.intersection(wanted);
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets).map_err(Error::io("drop capabilities"))
}

#[cfg(test)]
mod tests;
