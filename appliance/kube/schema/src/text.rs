//! Checks of strings: formats, patterns and names.

pub(crate) mod format;
pub mod names;
pub(crate) mod pattern;
