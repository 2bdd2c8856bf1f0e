//! Mounted filesystems, and opening of paths that must not lead out of them.

pub mod mount;
pub mod openat2;
