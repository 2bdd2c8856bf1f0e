//! The initramfs of the agent OS: the agent as `/init` and the folders it mounts things on.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Cpio, Error};

/// Where the modules of a stock kernel lie, named `NNN-name.ko`; the agent loads them in the order
/// of their names before it looks for a disk or a network card. Absent with the box's own kernel.
pub const MODULES_FOLDER: &str = "lib/modules-boot";

/// Near the best ratio; costs seconds once and nothing when a machine unpacks it.
const ZSTD_LEVEL: i32 = 19;

const FOLDERS: [&str; 7] = ["dev", "etc", "mnt", "proc", "run", "sys", "tmp"];

/// Build the initramfs for `agent`, a static program, and return it compressed. With `modules`, a
/// folder of uncompressed `NNN-name.ko` files goes in as well.
pub fn agent_initramfs(agent: &Path, modules: Option<&Path>) -> Result<Vec<u8>, Error> {
    let program = strip(agent)?;
    require_static(agent, &program)?;
    let mut archive = Cpio::default();
    for folder in FOLDERS {
        archive.folder(folder, if folder == "tmp" { 0o1777 } else { 0o755 });
    }
    // The kernel opens it as the agent's standard streams before anything is mounted.
    archive.character("dev/console", 0o600, 5, 1);
    archive.file("init", 0o755, program);
    if let Some(folder) = modules {
        add_modules(&mut archive, folder)?;
    }
    compress(&archive.into_bytes()?)
}

/// Compress an archive the way the kernel's `RD_ZSTD` unpacks.
pub fn compress(archive: &[u8]) -> Result<Vec<u8>, Error> {
    zstd::bulk::compress(archive, ZSTD_LEVEL).map_err(|source| Error::Compress { source })
}

fn add_modules(archive: &mut Cpio, folder: &Path) -> Result<(), Error> {
    let read = |source| Error::Read { path: folder.to_owned(), source };
    archive.folder("lib", 0o755);
    archive.folder(MODULES_FOLDER, 0o755);
    for entry in fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.extension().is_some_and(|extension| extension == "ko") {
            let data =
                fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
            archive.file(&format!("{MODULES_FOLDER}/{name}"), 0o644, data);
        }
    }
    Ok(())
}

/// The program without debug sections; its symbol names stay, for the agent's own backtraces.
fn strip(agent: &Path) -> Result<Vec<u8>, Error> {
    let place = std::env::temp_dir();
    let folder = tempfile::tempdir_in(&place)
        .map_err(|source| Error::Write { path: place.clone(), source })?;
    let out = folder.path().join("stripped");
    let status = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .arg(&out)
        .arg(agent)
        .status()
        .map_err(|source| Error::Program { program: "strip", package: "binutils", source })?;
    if !status.success() {
        return Err(Error::Ended { program: "strip", status, path: agent.to_owned() });
    }
    fs::read(&out).map_err(|source| Error::Read { path: out, source })
}

/// An ELF file with an interpreter segment wants a loader that the initramfs does not hold; PID 1
/// would fail with "not found" and the kernel would panic.
fn require_static(path: &Path, program: &[u8]) -> Result<(), Error> {
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

#[cfg(test)]
mod tests;
