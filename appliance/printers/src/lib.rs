//! Text of API objects for a terminal: tables in kubectl's format, YAML, JSON and names.
//!
//! Never: output to a stream, or a request to a box. Enter at [`table::Table`] and [`document`].

pub mod document;
pub mod table;
