//! Maps paths to files, for the router and for requests that bypass the router.

use std::net::IpAddr;

use artifact_cache::{Blob, CacheAccess};
use axum::http::StatusCode;
use stdx::MacAddr;

use crate::files::{ArtifactFolder, OpenFile};
use crate::loader::{BootFile, owner};
use crate::{Services, iso};

/// Files that a listener serves.
#[derive(Clone)]
pub struct Downloads {
    pub(super) services: Services,
    layout: Layout,
    cache: Option<CacheAccess>,
}

/// File at a path.
pub(super) enum Target {
    /// File of the artifact directory.
    File(ArtifactFile),
    /// Complete file of the cache, not evicted while this value lives.
    Blob(Blob),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Boot,
    Flat,
}

/// File of the artifact directory at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArtifactFile {
    pub(super) folder: ArtifactFolder,
    pub(super) name: String,
    /// `Some` for a loader, with the machine's MAC address if the path has one. A machine that may
    /// not netboot gets 404.
    pub(super) loader_owner: Option<Option<MacAddr>>,
}

impl Downloads {
    /// Creates the files under the paths of [`router`](super::router): loaders, the agent's files
    /// and images.
    pub fn boot(services: Services) -> Self {
        Self { services, layout: Layout::Boot, cache: None }
    }

    /// Creates the files under the paths of [`files_router`](super::files_router): the agent's
    /// files at the root.
    pub fn flat(services: Services) -> Self {
        Self { services, layout: Layout::Flat, cache: None }
    }

    /// Adds the cache's complete files, under the paths of [`cached_router`](super::cached_router).
    pub fn with_cache(self, cache: Option<CacheAccess>) -> Self {
        Self { cache, ..self }
    }

    /// Returns the file at a decoded path for a client. `None`: the router must handle the path.
    pub(super) fn find(&self, path: &str, peer: IpAddr) -> Option<Target> {
        let blob = || self.cache.as_ref()?.get(path, peer).map(Target::Blob);
        self.layout.find(path).map(Target::File).or_else(blob)
    }

    /// Opens a file for a machine; a failure is an HTTP status.
    pub(super) fn open(
        &self,
        target: &Target,
        peer: IpAddr,
    ) -> Result<OpenFile<std::fs::File>, StatusCode> {
        let file = match target {
            Target::File(file) => file,
            Target::Blob(blob) => return OpenFile::blob(blob).map_err(|_| StatusCode::NOT_FOUND),
        };
        if file.loader_owner.is_some_and(|owner| !self.services.may_netboot(owner, peer)) {
            return Err(StatusCode::NOT_FOUND);
        }
        let opened = self.services.files.open_here(file.folder, &file.name);
        opened.map_err(|error| status(file, &error))
    }
}

/// Returns the status for a file that could not be opened.
pub(super) fn status(file: &ArtifactFile, error: &std::io::Error) -> StatusCode {
    if error.kind() == std::io::ErrorKind::NotFound {
        return StatusCode::NOT_FOUND;
    }
    tracing::warn!(?file, %error, "a file could not be opened");
    StatusCode::INTERNAL_SERVER_ERROR
}

impl Layout {
    fn find(self, path: &str) -> Option<ArtifactFile> {
        let path = path.strip_prefix('/')?;
        if self == Self::Flat {
            let plain = !path.is_empty() && !path.contains('/');
            return plain.then(|| ArtifactFile::plain(ArtifactFolder::Agent, path));
        }
        let (front, rest) = path.split_once('/')?;
        match front {
            "agent" => Some(ArtifactFile::plain(ArtifactFolder::Agent, rest)),
            "images" => Some(ArtifactFile::plain(ArtifactFolder::Images, rest)),
            "tftp" => ArtifactFile::loader(rest),
            "ipxe" => ArtifactFile::loader(rest.strip_prefix("binary/")?),
            _ => None,
        }
    }
}

impl ArtifactFile {
    pub(super) fn plain(folder: ArtifactFolder, name: &str) -> Self {
        Self { folder, name: name.to_owned(), loader_owner: None }
    }

    /// Parses a loader's name with the rules of TFTP. `None`: the name is not a file's, or its
    /// content differs by machine.
    pub(super) fn loader(path: &str) -> Option<Self> {
        if iso::is_unified(path) {
            return None;
        }
        let (folder, name) = match BootFile::read(path)? {
            BootFile::File(name) => (ArtifactFolder::Loaders, name),
            BootFile::Agent(name) => (ArtifactFolder::Agent, name),
            BootFile::Pxelinux(_) | BootFile::Autoexec | BootFile::NotAllowed => return None,
        };
        Some(Self { folder, name, loader_owner: Some(owner(path)) })
    }
}

#[cfg(test)]
mod tests {
    use super::{ArtifactFile, Layout};
    use crate::files::ArtifactFolder;

    #[test]
    fn paths_are_smees_and_ours() {
        let mac = "52:54:00:77:00:01".parse().unwrap();
        let loader = |owner| ArtifactFile {
            loader_owner: Some(owner),
            ..ArtifactFile::plain(ArtifactFolder::Loaders, "ipxe.efi")
        };
        let trace = "-00-23b1e307bb35484f535a1f772c06910e-d887dc3912240434-01";
        for (path, file) in [
            ("/ipxe/binary/ipxe.efi", Some(loader(None))),
            (&format!("/ipxe/binary/ipxe.efi{trace}"), Some(loader(None))),
            ("/ipxe/binary/52:54:00:77:00:01/ipxe.efi", Some(loader(Some(mac)))),
            ("/ipxe/binary/52-54-00-77-00-01/ipxe.efi", Some(loader(Some(mac)))),
            ("/tftp/525400770001/ipxe.efi", Some(loader(Some(mac)))),
            ("/agent/vmlinuz", Some(ArtifactFile::plain(ArtifactFolder::Agent, "vmlinuz"))),
            ("/images/a/../b", Some(ArtifactFile::plain(ArtifactFolder::Images, "a/../b"))),
            ("/ipxe/binary/52:54:00:77:00:01/agent-x86_64.efi", None),
            ("/ipxe/script/auto.ipxe", None),
            ("/ipxe/binary/autoexec.ipxe", None),
            ("/tftp/pxelinux.cfg/01-52-54-00-77-00-01", None),
            ("/metadata", None),
            ("agent/vmlinuz", None),
            ("/", None),
        ] {
            assert_eq!(Layout::Boot.find(path), file, "{path}");
        }
        let flat = Some(ArtifactFile::plain(ArtifactFolder::Agent, "vmlinuz-x86_64"));
        assert_eq!(Layout::Flat.find("/vmlinuz-x86_64"), flat);
        assert_eq!(Layout::Flat.find("/"), None);
        assert_eq!(Layout::Flat.find("/a/b"), None);
    }
}
