//! Media of the agent OS with one machine's kernel arguments. A medium is an ISO that a BMC mounts,
//! or a unified kernel image (UKI) that firmware loads by itself.
//!
//! | Path | Answer |
//! |---|---|
//! | `/iso/[<folders>/]<machine>/<name>.iso` | `ROOT/iso/[<folders>/]<name>.iso`, patched |
//! | `/uki/<machine>/<name>.efi` | `ROOT/agent/<name>.efi`, patched |
//! | `/uki/<name>.efi` | the same file for the client, identified by its IP address |
//! | `/ipxe/binary/<mac>/agent-<arch>.efi` | as `/uki/`, where DHCP names loaders |
//!
//! `<machine>` is a MAC address in any spelling, or an instance id with dashes instead of colons.
//! Cluster API Provider Tinkerbell puts the instance id before the file's name.
//!
//! The file is common to all machines and is never changed. It contains [`MAGIC`], and each
//! response has the machine's arguments in that place ([`overlay`]). So a response has the file's
//! length, any range of it is consistent, and its entity tag depends on the arguments.

mod arguments;
mod handlers;
mod magic;
mod mounts;
mod original;
mod patch;

pub use arguments::arguments;
pub(crate) use handlers::{MediaRoutes, MediumRequest, routes};
pub use handlers::{is_unified, load_unified};
pub use magic::{MAGIC, MAX_PLACES, places};
pub use patch::{Patch, Replacement, overlay};

#[cfg(test)]
mod tests;
