//! Read operations: single objects, lists, watches, and their JSON text.

pub mod list;
pub mod selection;
pub mod text;
pub mod watch;
