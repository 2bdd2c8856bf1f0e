//! Checks the programs for an image: built for its processor, static, and without debug sections.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Arch, Error};

/// Returns the program at `path`, checked and without debug sections. The symbol names stay, for
/// the backtraces of the program.
pub(crate) fn program(path: &Path, arch: Arch) -> Result<Vec<u8>, Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    require_static(path, &fs::read(path).map_err(read)?, arch)?;
    strip(path, arch)
}

fn strip(program: &Path, arch: Arch) -> Result<Vec<u8>, Error> {
    // Debian's native strip supports one processor only.
    let (tool, package) = match arch {
        _ if arch == Arch::OWN => ("strip", "binutils"),
        Arch::X86_64 => ("x86_64-linux-gnu-strip", "binutils-x86-64-linux-gnu"),
        Arch::Aarch64 => ("aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"),
    };
    let place = std::env::temp_dir();
    let folder = tempfile::tempdir_in(&place)
        .map_err(|source| Error::Write { path: place.clone(), source })?;
    let out = folder.path().join("stripped");
    let status = Command::new(tool)
        .args(["--strip-debug", "-o"])
        .arg(&out)
        .arg(program)
        .status()
        .map_err(|source| Error::Program { program: tool, package, source })?;
    if !status.success() {
        return Err(Error::Ended { program: tool, status, path: program.to_owned() });
    }
    fs::read(&out).map_err(|source| Error::Read { path: out, source })
}

/// Checks that a program is static. An ELF file with an interpreter segment needs a loader that the
/// image does not contain. Process 1 would fail with "not found" and the kernel would panic.
pub(crate) fn require_static(path: &Path, program: &[u8], arch: Arch) -> Result<(), Error> {
    const PT_INTERP: u32 = 3;
    let refuse = |reason| Err(Error::NotStatic { path: path.to_owned(), arch, reason });
    // ELF magic, 64-bit class, little-endian.
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
        return refuse("its header is truncated");
    };
    // Values of e_machine in the ELF standard.
    let wanted = match arch {
        Arch::X86_64 => 62,
        Arch::Aarch64 => 183,
    };
    if machine != wanted {
        return refuse("it is for another processor");
    }
    for index in 0..count {
        let at = usize::try_from(table.saturating_add(index * size)).unwrap_or(usize::MAX);
        match word(at, 4) {
            None => return refuse("its program headers are truncated"),
            Some(kind) if kind == u64::from(PT_INTERP) => {
                return refuse("it needs a dynamic loader");
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Checks that a kernel is built for `arch`. The box's loader would refuse another one.
pub(crate) fn require_kernel(path: &Path, kernel: &[u8], arch: Arch) -> Result<(), Error> {
    // Linux's Documentation/arch: x86/boot.rst ("HdrS" at 0x202), arm64/booting.rst (magic at 56).
    let found = match (kernel.get(0x202..0x206), kernel.get(56..60)) {
        (Some(b"HdrS"), _) => Some(Arch::X86_64),
        (_, Some(b"ARM\x64")) => Some(Arch::Aarch64),
        _ => None,
    };
    if found == Some(arch) {
        return Ok(());
    }
    Err(Error::NotAKernel { path: path.to_owned(), arch })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_magic() {
        let mut x86 = vec![0; 4096];
        x86[0x202..0x206].copy_from_slice(b"HdrS");
        let mut arm = vec![0; 4096];
        arm[56..60].copy_from_slice(b"ARM\x64");
        let path = Path::new("vmlinuz");
        require_kernel(path, &x86, Arch::X86_64).unwrap();
        require_kernel(path, &arm, Arch::Aarch64).unwrap();
        for (bytes, arch) in [(&x86[..], Arch::Aarch64), (&arm, Arch::X86_64), (b"", Arch::X86_64)]
        {
            let said = require_kernel(path, bytes, arch).unwrap_err().to_string();
            assert!(said.contains(arch.name()), "{said}");
        }
    }
}
