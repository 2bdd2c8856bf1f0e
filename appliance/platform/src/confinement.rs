//! Rights that a process gives up at its start and never gets back: capabilities, system calls,
//! folders to write to, core dumps. A fault in a parser of unauthenticated input then reaches no
//! further than the rest.
//!
//! Enter at [`enter`], before the first thread: capabilities and Landlock are a thread's own, and
//! later threads inherit them. [`State::read`] says what holds.

mod landlock;
mod seccomp;
mod state;

use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use crate::Error;
pub use state::State;

/// Rights that stay.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Capabilities, as far as the process has them.
    pub capabilities: CapabilitySet,
    /// Folders below which files are made, written and removed. One that is not there is left out.
    pub writable: Vec<PathBuf>,
    /// Folders and files below which files are written, and device controls are allowed.
    pub devices: Vec<PathBuf>,
    /// Programs that may be started, in this process too; empty denies `execve`.
    pub programs: Vec<PathBuf>,
}

/// Capabilities of a box that is firmware: its ports and raw sockets, its network, its clock.
pub const FIRMWARE: CapabilitySet = CapabilitySet::NET_BIND_SERVICE
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SYS_TIME);
/// Capabilities of a box on another system: its ports and raw sockets.
pub const GUEST: CapabilitySet = CapabilitySet::NET_BIND_SERVICE.union(CapabilitySet::NET_RAW);

/// Version of Landlock that holds this process; 0 when none does.
static LANDLOCK: OnceLock<u32> = OnceLock::new();

/// Gives up everything that is not in `limits`, in this thread and all that it starts. Returns the
/// steps that the kernel refused: the others hold all the same.
pub fn enter(limits: &Limits) -> Vec<Error> {
    let mut refused = Vec::new();
    let mut attempt = |result: Result<(), Error>| refused.extend(result.err());
    attempt(no_dumps());
    attempt(keep(limits.capabilities));
    attempt(thread::set_no_new_privs(true).map_err(Error::io("refuse new privileges")));
    attempt(landlock::enter(limits).map(|version| {
        // A second call adds rules, and the version stays.
        let _ = LANDLOCK.set(version);
    }));
    attempt(seccomp::enter(!limits.programs.is_empty()));
    refused
}

/// No core dump, and no look into the memory by other processes of this user.
fn no_dumps() -> Result<(), Error> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(Error::io("hide the memory from other processes"))?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none).map_err(Error::io("forbid core dumps"))
}

fn keep(wanted: CapabilitySet) -> Result<(), Error> {
    let own = thread::capabilities(None).map_err(Error::io("read the capabilities"))?;
    // The bounding set takes CAP_SETPCAP. Without it the process is no root that could win others.
    if own.effective.contains(CapabilitySet::SETPCAP) {
        for one in CapabilitySet::all().difference(wanted) {
            // A kernel that is older than the capability says that there is none of its number.
            if thread::capability_is_in_bounding_set(one) == Ok(true) {
                let what = format!("give up {} for programs", state::names(one));
                thread::remove_capability_from_bounding_set(one).map_err(Error::io(what))?;
            }
        }
    }
    // Kernels before 4.3 have no ambient set.
    let _ = thread::clear_ambient_capability_set();
    let kept = own.permitted.intersection(wanted);
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets).map_err(Error::io("give up capabilities"))
}

#[cfg(test)]
mod tests;
