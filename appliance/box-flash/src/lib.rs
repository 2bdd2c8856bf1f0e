//! Writes an image of the box to a disk, and its configuration to the disk's volume.
//!
//! Never: writes to a disk that is in use or that the caller did not open, and never decides that a
//! disk may be erased: the caller compares the confirmation of a person with [`Target::proof`].
//!
//! Enter at [`Image::find`] (what to write), [`Target`] (where to), [`flash`] and [`configure`].

mod config;
mod copy;
mod error;
mod file;
mod image;
mod map;
mod release;
mod target;
mod volume;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use copy::Writer;

pub use config::read as read_config;
pub use copy::Failure as CopyFailure;
pub use error::FlashError;
pub use image::Image;
pub use map::{Map, Part};
pub use release::Keys;
pub use target::Target;
pub use volume::Failure as VolumeFailure;

/// Counters of a copy, for a progress display; clones share the counters.
#[derive(Debug, Clone, Default)]
pub struct FlashProgress {
    /// Bytes of the image file that were read.
    pub read: Arc<AtomicU64>,
    /// Bytes of the disk that were read back and compared; 0 while the image is written.
    pub compared: Arc<AtomicU64>,
    /// Flag that interrupts the copy if it is true.
    pub stop: Arc<AtomicBool>,
}

/// Result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flashed {
    /// Bytes that were written and read back.
    pub bytes: u64,
    /// True if the former content of the disk was discarded.
    pub discarded: bool,
}

/// Writes `image` to an exclusively opened `disk` of `size` bytes, and reads it back.
///
/// # Errors
/// The copy fails; the disk has no system then.
pub fn flash(
    image: &Image,
    (disk, size): (&File, u64),
    progress: &FlashProgress,
) -> Result<Flashed, FlashError> {
    let writer = Writer { disk, size, stop: &progress.stop };
    let mut stream = image.open(&progress.read)?;
    let discarded = writer.discard();
    let (written, head) = writer.write(&mut stream, &image.map)?;
    image.check(stream)?;
    let compared = |at| progress.compared.store(at, Ordering::Relaxed);
    writer.compare(&written, &head, compared)?;
    writer.finish(&head)?;
    let bytes = written.parts.iter().map(|part| part.bytes.end - part.bytes.start).sum();
    Ok(Flashed { bytes, discarded })
}

/// Writes `text` as `box.toml` to the volume TINBOX of a disk with the box's image.
///
/// # Errors
/// The volume cannot be found or written; the disk is a box without configuration then.
pub fn configure(disk: &File, text: &str) -> Result<(), FlashError> {
    Ok(volume::configure(disk, text)?)
}
