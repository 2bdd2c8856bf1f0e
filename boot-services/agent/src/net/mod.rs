//! The agent's own network: one link up, one address by DHCP, one default route.

pub mod dhcp;
mod lease;
mod link;
mod netlink;

pub use lease::{Configured, configure, keep};
pub use link::loopback_up;
