//! Discovery of management controllers (BMCs) on the segments of the box: ASF presence ping, IPMI
//! system GUID, Intel AMT ports, Redfish by SSDP.
//!
//! Never: logs in, sends a command that changes a BMC, or reads the store. A found BMC is a
//! proposal for a person.
//!
//! Enter at [`scan()`], then at [`Proposal::all`].

pub mod amt_server;
pub mod asf;
mod found;
pub mod ipmi;
mod manifest;
mod neighbors;
mod owner;
mod proposal;
mod scan;
pub mod ssdp;

pub use found::{DiscoveredBmc, ProtocolKind};
pub use manifest::manifest;
pub use neighbors::neighbors;
pub use owner::{KnownMachine, OwnerMatch, owner};
pub use proposal::Proposal;
pub use scan::{Segment, scan};
