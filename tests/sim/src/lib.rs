//! A rack in one process: the box's real DHCP engine, TFTP transfers, scripts and loader choice,
//! thousands of machines that boot as their firmware was recorded to, a wire that loses, doubles
//! and reorders, a box that is killed; all on a virtual clock, and all by one seed.
//!
//! Never: a socket, a thread, the time of day, or chance that is not the seed's; with the same
//! [`Settings`] a run is the same to the last event ([`Summary::trace`]).
//!
//! Enter at [`run()`], and at [`fleet::run()`] for what machines do once they have booted. Inside:
//! `machine` is a machine, `appliance` the box around the real engines, `wire` and `faults` what
//! happens between them, `ledger` what must never happen, looked at with every message, `world`
//! puts them together.
//!
//! Not modelled: the ARP caches of machines (a unicast finds whoever uses the address), switches
//! that learn, TCP (an HTTP request is late by its lost segments, and ends with the box), the
//! content of files, time on the CPU beyond a constant per datagram.

mod appliance;
pub mod clock;
pub mod faults;
pub mod fleet;
mod ledger;
mod machine;
mod message;
mod other_server;
mod queue;
mod rack;
mod settings;
mod store;
mod summary;
mod wire;
mod world;

pub use faults::Faults;
pub use ledger::Violation;
pub use rack::MAX_MACHINES;
pub use settings::Settings;
pub use summary::{Failure, Summary};
pub use world::run;
