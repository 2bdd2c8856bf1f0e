//! Control-plane endpoints of the box: for each ControlPlaneEndpoint object, a virtual address
//! whose TCP connections go to the healthy machines of the control plane of a cluster.
//!
//! The objects of the box are the only input, so that a box without connection to its management
//! cluster continues after a restart. The crate must never: terminate TLS of a client, read the
//! forwarded bytes, or take an address that another machine answers for. Enter at [`Endpoints`].

mod backends;
mod endpoint;
mod forward;
mod host;
mod plan;
mod probe;
mod service;
mod state;

pub use host::{AddressHost, KernelAddresses};
pub use service::{Endpoints, give_back_all};
