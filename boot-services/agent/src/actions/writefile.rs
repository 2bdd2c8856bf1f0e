//! `writefile`: writes CONTENTS to the file DEST_PATH on the partition DEST_DISK (FS_TYPE), with
//! UID, GID, MODE, and DIRMODE for new folders.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use imaging::Meter;
use imaging::mount::{Mounted, Owner, Purpose};
use imaging::stream::blocking;

use super::environment::Environment;
use crate::Error;

/// File to write, and its destination.
#[derive(Clone, PartialEq, Eq)]
pub struct WriteFile {
    device: PathBuf,
    fs_type: String,
    path: String,
    contents: String,
    owner: Owner,
}

/// Omits the contents, which may contain secrets.
impl fmt::Debug for WriteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteFile")
            .field("device", &self.device)
            .field("fs_type", &self.fs_type)
            .field("path", &self.path)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl WriteFile {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        let path = environment.required("DEST_PATH")?;
        if !path.starts_with('/') || path.ends_with('/') || path.split('/').any(|part| part == "..")
        {
            let reason = format!("{path:?} is not an absolute path of a file without ..");
            return Err(environment.bad("DEST_PATH", reason));
        }
        Ok(Self {
            device: environment.device("DEST_DISK")?,
            fs_type: environment.required("FS_TYPE")?.to_owned(),
            path: path.to_owned(),
            contents: environment.present("CONTENTS")?.to_owned(),
            owner: Owner {
                uid: environment.id("UID")?,
                gid: environment.id("GID")?,
                mode: environment.mode("MODE", 0o644)?,
                dir_mode: environment.mode("DIRMODE", 0o755)?,
            },
        })
    }

    #[cfg(test)]
    pub(super) fn contents(&self) -> &str {
        &self.contents
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, imaging::Error> {
        meter.say(format!("writing {} on {}", self.path, self.device.display()));
        blocking("writing the file", move || {
            let mounted = Mounted::mount(&self.device, &self.fs_type, Purpose::Write)?;
            mounted.write(&self.path, self.contents.as_bytes(), self.owner)?;
            mounted.unmount()?;
            let size = stdx::bytes(self.contents.len() as u64);
            Ok(format!("wrote {size} to {} on {}", self.path, self.device.display()))
        })
        .await
    }
}
