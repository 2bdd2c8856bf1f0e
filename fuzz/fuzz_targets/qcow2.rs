//! A qcow2 image of an image server, read to its end or to a limit.

#![no_main]

use std::io::{self, Read as _};

use imaging::stream::qcow2::{Disk, Part, Storage};
use libfuzzer_sys::fuzz_target;

/// Maximum bytes that are read from one disk: the header of an image may contain any size.
const READ_MAX: u64 = 4 << 20;

struct File<'a>(&'a [u8]);

impl Storage for File<'_> {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8], _: Part) -> io::Result<()> {
        let start = usize::try_from(offset).expect("never past the end");
        out.copy_from_slice(&self.0[start..start + out.len()]);
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    // The magic is written here, so that the fuzzer does not have to find it.
    let mut image = b"QFI\xfb".to_vec();
    image.extend_from_slice(bytes);
    let Ok(disk) = Disk::open(File(&image)) else { return };
    let (size, mut read) = (disk.size(), Vec::new());
    if disk.take(READ_MAX).read_to_end(&mut read).is_ok() {
        assert_eq!(read.len() as u64, size.min(READ_MAX));
    }
});
