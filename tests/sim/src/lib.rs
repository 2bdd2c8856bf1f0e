//! A rack in one process: the box's real DHCP engine, TFTP transfers, scripts and loader choice,
//! with thousands of machines. The machines boot with recorded behavior of their firmware, the
//! network loses, duplicates and reorders packets, and the box is killed. All of it runs on a
//! virtual clock and from one seed.
//!
//! Never: a socket, the time of day, a thread, or randomness that is not from the seed. An
//! exception is [`fleet`]: it uses the threads of the product's store, and the randomness of tokio.
//! Two runs with the same [`Settings`] have exactly the same events (compare [`Summary::trace`]).
//!
//! Enter at [`run()`], and at [`fleet::run()`] for machines after their boot. Inside: `machine` is
//! a machine, `appliance` the box around the real engines, `wire` and `faults` the network between
//! them. `ledger` has the rules that must never be broken, checked with every message, and `world`
//! connects all of them.
//!
//! Not modeled: the ARP caches of machines (a unicast reaches the current user of the address),
//! switches that learn, the content of files, and CPU time beyond a constant per datagram. TCP is
//! modeled only as a delay for each lost segment; a kill of the box ends an HTTP request.

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
