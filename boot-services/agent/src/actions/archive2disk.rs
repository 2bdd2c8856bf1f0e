//! `archive2disk`: ARCHIVE_URL, ARCHIVE_TYPE, TARFILE_CHECKSUM (or
//! INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION), DEST_DISK (a partition), FS_TYPE, DEST_PATH,
//! HTTP_CLIENT_TIMEOUT_MINUTES. The first bytes of a tar determine its compression. The timeout is
//! the maximum time without a new byte; upstream limits the whole download.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use imaging::Meter;
use imaging::mount::{Mounted, Owner, Purpose};
use imaging::stream::{Archive, Timeouts, read_archive};
use unpack::{UnpackSummary, unpack};

use super::Limits;
use super::environment::Environment;
use crate::Error;

/// Valid values of ARCHIVE_TYPE. No effect beyond validation: the compression is detected.
const TYPES: [&str; 6] = ["tar", "targz", "tarxz", "tarzst", "tarbz2", "tarlz4"];
/// Owner and mode of missing folders of DEST_PATH, which the action creates.
const FOLDER: Owner = Owner { uid: 0, gid: 0, mode: 0o644, dir_mode: 0o755 };

/// Archive to unpack, and its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive2Disk {
    archive: Archive,
    device: PathBuf,
    fs_type: String,
    path: String,
    timeouts: ArchiveTimeouts,
}

/// [`Timeouts`], compared by `silence` only.
#[derive(Debug, Clone, Copy)]
struct ArchiveTimeouts(Timeouts);

impl PartialEq for ArchiveTimeouts {
    fn eq(&self, other: &Self) -> bool {
        self.0.silence == other.0.silence
    }
}

impl Eq for ArchiveTimeouts {}

impl Archive2Disk {
    pub(super) fn parse(environment: &Environment<'_>, limits: Limits) -> Result<Self, Error> {
        let kind = environment.optional("ARCHIVE_TYPE").unwrap_or("tar").to_lowercase();
        if !TYPES.contains(&kind.as_str()) {
            let reason = format!("{kind:?} is not one of {}", TYPES.join(", "));
            return Err(environment.bad("ARCHIVE_TYPE", reason));
        }
        let unverified = environment.flag("INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION")?;
        let checksum = if unverified {
            None
        } else {
            let text = environment.required("TARFILE_CHECKSUM")?;
            Some(environment.checksum("TARFILE_CHECKSUM", text)?)
        };
        let path = environment.optional("DEST_PATH").unwrap_or("/");
        if path.split('/').any(|part| part == "..") {
            return Err(environment.bad("DEST_PATH", format!("{path:?} contains ..")));
        }
        let mut timeouts = limits.timeouts;
        if let Some(minutes) = environment.minutes("HTTP_CLIENT_TIMEOUT_MINUTES")? {
            timeouts.silence = Duration::from_secs(minutes * 60);
        }
        Ok(Self {
            archive: Archive { url: environment.required("ARCHIVE_URL")?.parse()?, checksum },
            device: environment.device("DEST_DISK")?,
            fs_type: environment.required("FS_TYPE")?.to_owned(),
            path: path.to_owned(),
            timeouts: ArchiveTimeouts(timeouts),
        })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, imaging::Error> {
        let (url, device) = (self.archive.url.to_string(), self.device.display().to_string());
        meter.say(format!("unpacking {url} to {} on {device}", self.path));
        let (path, shown) = (self.path.clone(), url.clone());
        let work = move |archive: &mut dyn std::io::Read| -> Result<UnpackSummary, imaging::Error> {
            let mounted = Mounted::mount(&self.device, &self.fs_type, Purpose::Write)?;
            let root = mounted.folders(&self.path, FOLDER)?;
            let unpacked = unpack(archive, &root).map_err(|refused| imaging::Error::Unpack {
                url: shown,
                entry: refused.name,
                device: self.device.clone(),
                source: refused.source,
            })?;
            drop(root);
            mounted.unmount()?;
            Ok(unpacked)
        };
        let timeouts = self.timeouts.0;
        let verified = self.archive.checksum.clone();
        let (unpacked, fetched) = read_archive(&self.archive, timeouts, meter, work).await?;
        let verified = verified.map(|sum| format!(", {} verified", sum.algorithm().name()));
        Ok(format!(
            "unpacked {} entries, {} from {}, to {path} on {device}{}",
            unpacked.entries,
            stdx::bytes(unpacked.bytes),
            stdx::bytes(fetched),
            verified.unwrap_or(", not verified".to_owned()),
        ))
    }
}
