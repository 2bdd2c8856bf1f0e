//! A machine's disk, whose contents survive power cuts: the blocks of the only image. As the real
//! agent does, an action clears the first block before all others and writes it last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks of an image.
pub const BLOCKS: usize = 8;

/// Shared state of a machine's disk.
#[derive(Default)]
pub struct Disk(Mutex<State>);

#[derive(Default)]
struct State {
    /// True for each block that has the image's bytes.
    written: [bool; BLOCKS],
    /// The action that has the disk open.
    writer: Option<String>,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the disk for an action.
    ///
    /// # Errors
    /// The ID of the action that has the disk open.
    pub fn open(self: &Arc<Self>, action: &str) -> Result<Opened, String> {
        let mut state = self.state();
        if let Some(writer) = &state.writer {
            return Err(writer.clone());
        }
        state.writer = Some(action.to_owned());
        drop(state);
        Ok(Opened(Arc::clone(self)))
    }

    /// True when an action has the disk open.
    pub fn is_open(&self) -> bool {
        self.state().writer.is_some()
    }

    /// True when the first block is written, so that firmware can boot the disk.
    pub fn is_bootable(&self) -> bool {
        self.state().written[0]
    }

    /// True when every block of the image is written.
    pub fn is_whole(&self) -> bool {
        self.state().written.iter().all(|written| *written)
    }
}

/// Exclusive access to a disk, until dropped.
pub struct Opened(Arc<Disk>);

impl Opened {
    /// Clears the first block, so that the disk is not bootable.
    pub fn clear_head(&self) {
        self.0.state().written[0] = false;
    }

    /// Clears all of the disk.
    pub fn erase(&self) {
        self.0.state().written = [false; BLOCKS];
    }

    /// Writes a block of the image.
    pub fn write(&self, block: usize) {
        self.0.state().written[block] = true;
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.state().writer = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BLOCKS, Disk};

    #[test]
    fn a_disk_has_one_writer_and_boots_once_it_is_whole() {
        let disk = Arc::new(Disk::default());
        let opened = disk.open("one").unwrap_or_else(|_| panic!("it is free"));
        assert_eq!(disk.open("two").err().as_deref(), Some("one"));
        opened.erase();
        (1..BLOCKS).for_each(|block| opened.write(block));
        assert!(!disk.is_bootable() && !disk.is_whole());
        opened.write(0);
        drop(opened);
        assert!(disk.is_bootable() && disk.is_whole() && !disk.is_open());
        disk.open("two").unwrap_or_else(|_| panic!("it is free again")).clear_head();
        assert!(!disk.is_bootable());
    }
}
