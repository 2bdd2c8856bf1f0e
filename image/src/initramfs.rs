//! Builds the initramfs of the agent OS: the agent as `/init`, and the folders for its mounts.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::{Arch, Cpio, Error, elf};

/// Folder for modules of a stock kernel, named `NNN-name.ko`. The agent loads them in the order of
/// their names before it searches for disks and NICs. Absent with the box's own kernel.
pub const MODULES_FOLDER: &str = "lib/modules-boot";

/// File with the checksum of the tools image, in the format of sha256sum.
pub const TOOLS_SUM: &str = "etc/tools.sha256";

/// Compression level near the best ratio. It costs seconds once, and nothing when a machine
/// decompresses.
const ZSTD_LEVEL: i32 = 19;

const FOLDERS: [&str; 7] = ["dev", "etc", "mnt", "proc", "run", "sys", "tmp"];

/// Builds the initramfs for `agent`, a static program for `arch`, and returns it compressed. With
/// `modules`, a folder of uncompressed `NNN-name.ko` files is added. The agent downloads the tools
/// image when it is needed, so only the checksum of `tools` is added.
pub fn agent_initramfs(
    agent: &Path,
    arch: Arch,
    modules: Option<&Path>,
    tools: Option<&Path>,
) -> Result<Vec<u8>, Error> {
    let program = elf::program(agent, arch)?;
    let mut archive = Cpio::default();
    for folder in FOLDERS {
        archive.folder(folder, if folder == "tmp" { 0o1777 } else { 0o755 });
    }
    // The kernel opens this device for the agent's standard streams before anything is mounted.
    archive.character("dev/console", 0o600, 5, 1);
    if let Some(tools) = tools {
        archive.file(TOOLS_SUM, 0o644, sum(tools)?);
    }
    archive.file("init", 0o755, program);
    if let Some(folder) = modules {
        add_modules(&mut archive, folder)?;
    }
    compress(&archive.into_bytes()?)
}

/// Compresses an archive in the format of the kernel's `RD_ZSTD`.
pub fn compress(archive: &[u8]) -> Result<Vec<u8>, Error> {
    zstd::bulk::compress(archive, ZSTD_LEVEL).map_err(|source| Error::Compress { source })
}

fn sum(path: &Path) -> Result<Vec<u8>, Error> {
    let data = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{}  {name}\n", stdx::hex(&Sha256::digest(data))).into_bytes())
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

#[cfg(test)]
mod tests;
