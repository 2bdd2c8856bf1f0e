//! Parts of the benches of the API and of Cluster API: a client that opens few connections, and the
//! memory of processes.
//!
//! Never: measures or compares. Enter at [`client::Client`] and [`rss_mib`].

pub mod client;
mod memory;

pub use memory::rss_mib;
