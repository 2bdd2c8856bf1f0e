//! Sources of the status view that read the index and related services.

pub mod contested;
pub mod images;
pub mod machines;
