//! Status sources that read the index, the workflow service and the image cache.

pub mod contested;
pub mod images;
pub mod machines;
