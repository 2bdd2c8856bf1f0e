//! Reading: one object, lists, watches, and their text.

pub mod list;
pub mod selection;
pub mod text;
pub mod watch;
