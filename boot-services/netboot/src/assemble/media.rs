//! Builds the media in the artifact directory from the files there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{AgentOs, cd, unified};
use crate::Error;
use crate::files::{ArtifactFolder, Files};

/// File name of the stub in the agent's folder, as in systemd.
pub const STUB: &str = "linuxx64.efi.stub";
/// File name of the unified kernel image in the agent's folder.
pub const UNIFIED: &str = "agent-x86_64.efi";
/// File name of the CD in the folder of media.
pub const CD: &str = "agent-x86_64.iso";
/// File name, beside the CD, of the checksums of the media's inputs.
const SUMS: &str = "agent-x86_64.sums";

/// Builds `agent/agent-x86_64.efi` and `iso/agent-x86_64.iso` from the `agent` folder's stub
/// ([`STUB`]), `kernel` and `initramfs`. Returns `Ok(false)` without building if both media exist
/// and were built from these inputs. File times are not compared: after a rollback the right inputs
/// are older than the media of the newer release. A concurrent reader gets the complete old or new
/// file. Blocks, and keeps kernel and initramfs in memory meanwhile.
///
/// # Errors
/// A file cannot be read or written ([`Error::Artifact`]), or a medium cannot be built
/// ([`unified`], [`cd`]).
pub fn refresh(files: &Files, kernel: &str, initramfs: &str) -> Result<bool, Error> {
    let agent = |name: &str| {
        let missing =
            || Error::Artifact { path: name.into(), source: io::ErrorKind::NotFound.into() };
        files.path(ArtifactFolder::Agent, name).ok_or_else(missing)
    };
    let inputs = [agent(STUB)?, agent(kernel)?, agent(initramfs)?];
    let folder = files.folder(ArtifactFolder::Iso);
    let outputs = [agent(UNIFIED)?, folder.join(CD)];
    let read = |path: &PathBuf| fs::read(path).map_err(at(path));
    let [stub, kernel, initramfs] = [read(&inputs[0])?, read(&inputs[1])?, read(&inputs[2])?];
    let sums: String =
        [&stub, &kernel, &initramfs].map(|it| stdx::hex(&Sha256::digest(it)) + "\n").concat();
    let known = folder.join(SUMS);
    let is_made = outputs.iter().all(|path| path.exists());
    if is_made && fs::read_to_string(&known).is_ok_and(|known| known == sums) {
        return Ok(false);
    }
    let os = AgentOs { stub: &stub, kernel: &kernel, initramfs: &initramfs };
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    // Until all media are written, some of them may be made from other inputs.
    match fs::remove_file(&known) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&known)(error)),
        _ => {}
    }
    write(&outputs[0], |out| unified(&os)?.write_to(out).map_err(at(&outputs[0])))?;
    write(&outputs[1], |out| cd(&os)?.write_to(out).map_err(at(&outputs[1])))?;
    write(&known, |out| out.write_all(sums.as_bytes()).map_err(at(&known)))?;
    Ok(true)
}

fn write(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>,
) -> Result<(), Error> {
    let part = path.with_extension("part");
    let mut out = BufWriter::new(File::create(&part).map_err(at(&part))?);
    content(&mut out)?;
    out.flush().map_err(at(&part))?;
    out.get_ref().sync_all().map_err(at(&part))?;
    fs::rename(&part, path).map_err(at(path))
}

fn at(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Artifact { path: path.to_owned(), source }
}
