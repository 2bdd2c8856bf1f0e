//! Text for a terminal: tables in kubectl's format, YAML, JSON and names of API objects, and the
//! summary of a box.
//!
//! Never: output to a stream, or a request to a box. Enter at [`table::Table`], [`document`] and
//! [`overview`].

pub mod bmc;
pub mod dhcp_clients;
pub mod document;
pub mod inventory;
pub mod machines;
pub mod overview;
pub mod table;
pub mod tokens;
pub mod update;
pub mod workflow;
