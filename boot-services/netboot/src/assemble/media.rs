//! The media in the artifact directory, made of what lies there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{AgentOs, Pieces, cd, unified};
use crate::Error;
use crate::files::{Files, Shelf};

/// The stub's name in the agent's folder, as systemd has it.
pub const STUB: &str = "linuxx64.efi.stub";
/// The unified kernel image's name in the agent's folder.
pub const UNIFIED: &str = "agent-x86_64.efi";
/// The CD's name in the folder of media.
pub const CD: &str = "agent-x86_64.iso";

/// Makes `agent/agent-x86_64.efi` and `iso/agent-x86_64.iso` out of the `agent` folder's stub
/// ([`STUB`]), `kernel` and `initramfs`, unless both are there and newer than those. Whoever reads
/// at that moment gets the old file or the new one, whole. Blocks; holds kernel and initramfs in
/// memory for as long.
///
/// # Errors
/// [`Error::Artifact`], and what [`unified`] and [`cd`] give. `Ok(false)`: there was nothing to do.
pub fn refresh(files: &Files, kernel: &str, initramfs: &str) -> Result<bool, Error> {
    let agent = |name: &str| {
        let missing =
            || Error::Artifact { path: name.into(), source: io::ErrorKind::NotFound.into() };
        files.path(Shelf::Agent, name).ok_or_else(missing)
    };
    let inputs = [agent(STUB)?, agent(kernel)?, agent(initramfs)?];
    let folder = files.shelf(Shelf::Iso);
    let outputs = [agent(UNIFIED)?, folder.join(CD)];
    let made = outputs.iter().map(|path| modified(path)).collect::<Result<Vec<_>, _>>();
    let newest = inputs.iter().map(|path| modified(path)).collect::<Result<Vec<_>, _>>()?;
    if made.is_ok_and(|made| made.iter().min() > newest.iter().max()) {
        return Ok(false);
    }
    let read = |path: &PathBuf| fs::read(path).map_err(at(path));
    let [stub, kernel, initramfs] = [read(&inputs[0])?, read(&inputs[1])?, read(&inputs[2])?];
    let os = AgentOs { stub: &stub, kernel: &kernel, initramfs: &initramfs };
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    write(&outputs[0], &unified(&os)?)?;
    write(&outputs[1], &cd(&os)?)?;
    Ok(true)
}

fn modified(path: &Path) -> Result<SystemTime, Error> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).map_err(at(path))
}

fn write(path: &Path, pieces: &Pieces<'_>) -> Result<(), Error> {
    let part = path.with_extension("part");
    let mut out = BufWriter::new(File::create(&part).map_err(at(&part))?);
    pieces.write_to(&mut out).and_then(|()| out.flush()).map_err(at(&part))?;
    out.get_ref().sync_all().map_err(at(&part))?;
    fs::rename(&part, path).map_err(at(path))
}

fn at(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Artifact { path: path.to_owned(), source }
}
