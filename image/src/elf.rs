//! The programs that go into an image: without debug sections, and able to run alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Error;

/// The program without debug sections; its symbol names stay, for its own backtraces.
pub(crate) fn strip(program: &Path) -> Result<Vec<u8>, Error> {
    let place = std::env::temp_dir();
    let folder = tempfile::tempdir_in(&place)
        .map_err(|source| Error::Write { path: place.clone(), source })?;
    let out = folder.path().join("stripped");
    let status = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .arg(&out)
        .arg(program)
        .status()
        .map_err(|source| Error::Program { program: "strip", package: "binutils", source })?;
    if !status.success() {
        return Err(Error::Ended { program: "strip", status, path: program.to_owned() });
    }
    fs::read(&out).map_err(|source| Error::Read { path: out, source })
}

/// An ELF file with an interpreter segment wants a loader that the initramfs does not hold; PID 1
/// would fail with "not found" and the kernel would panic.
pub(crate) fn require_static(path: &Path, program: &[u8]) -> Result<(), Error> {
    const PT_INTERP: u32 = 3;
    let refuse = |reason| Err(Error::NotStatic { path: path.to_owned(), reason });
    // 64-bit, little-endian.
    if program.get(..6) != Some(b"\x7fELF\x02\x01".as_slice()) {
        return refuse("it is not a 64-bit ELF file");
    }
    let word = |at: usize, size: usize| -> Option<u64> {
        let bytes = program.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    let (Some(machine), Some(table), Some(size), Some(count)) =
        (word(18, 2), word(32, 8), word(54, 2), word(56, 2))
    else {
        return refuse("its header is cut short");
    };
    if machine != 62 && machine != 183 {
        return refuse("it is for another processor");
    }
    for index in 0..count {
        let at = usize::try_from(table.saturating_add(index * size)).unwrap_or(usize::MAX);
        match word(at, 4) {
            None => return refuse("its program headers are cut short"),
            Some(kind) if kind == u64::from(PT_INTERP) => {
                return refuse("it asks for a dynamic loader");
            }
            Some(_) => {}
        }
    }
    Ok(())
}
