//! Parts of the status view that are read from the index and its neighbors.

pub mod contested;
pub mod images;
pub mod machines;
