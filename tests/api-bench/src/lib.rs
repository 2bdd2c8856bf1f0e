//! Parts of the benches of the API, of power control, of the pages and of Cluster API: a client
//! with one connection for each task, memory and processor time of processes.
//!
//! Never: measures or compares. Enter at [`client::Client`] and [`rss_mib`].

pub mod client;
mod memory;
mod processor;

pub use memory::rss_mib;
pub use processor::cpu_percent;
