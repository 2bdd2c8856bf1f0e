//! Which file a path names: the one rule that the fast way past the router and the router share.

use std::net::IpAddr;

use artifact_cache::{Blob, CacheAccess};
use axum::http::StatusCode;
use stdx::MacAddr;

use crate::files::{Opened, Shelf};
use crate::loader::{Wanted, owner};
use crate::{Services, iso};

/// The files of a listener.
#[derive(Clone)]
pub struct Downloads {
    pub(super) services: Services,
    layout: Layout,
    cache: Option<CacheAccess>,
}

/// What a path leads to.
pub(super) enum Target {
    /// A file of the artifact directory.
    File(Found),
    /// A whole file of the cache, which stays there as long as this lives.
    Blob(Blob),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Boot,
    Flat,
}

/// A file that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) shelf: Shelf,
    pub(super) name: String,
    /// It is a loader, for this machine if the path says so: not for who may not netboot.
    pub(super) guard: Option<Option<MacAddr>>,
}

impl Downloads {
    /// Loaders, the agent's files and images, where [`router`](super::router) has them.
    pub fn boot(services: Services) -> Self {
        Self { services, layout: Layout::Boot, cache: None }
    }

    /// The agent's files at the root, as [`files_router`](super::files_router) has them.
    pub fn flat(services: Services) -> Self {
        Self { services, layout: Layout::Flat, cache: None }
    }

    /// The whole files of the cache too, where [`cached_router`](super::cached_router) has them.
    pub fn with_cache(self, cache: Option<CacheAccess>) -> Self {
        Self { cache, ..self }
    }

    /// The file at a decoded path for a client; `None`: the path is the router's.
    pub(super) fn find(&self, path: &str, peer: IpAddr) -> Option<Target> {
        let blob = || self.cache.as_ref()?.held(path, peer).map(Target::Blob);
        self.layout.find(path).map(Target::File).or_else(blob)
    }

    /// Opens a file for a machine; a failure is a status.
    pub(super) fn open(
        &self,
        target: &Target,
        peer: IpAddr,
    ) -> Result<Opened<std::fs::File>, StatusCode> {
        let found = match target {
            Target::File(found) => found,
            Target::Blob(blob) => return Opened::blob(blob).map_err(|_| StatusCode::NOT_FOUND),
        };
        if found.guard.is_some_and(|owner| !self.services.may_netboot(owner, peer)) {
            return Err(StatusCode::NOT_FOUND);
        }
        let opened = self.services.files.open_here(found.shelf, &found.name);
        opened.map_err(|error| status(found, &error))
    }
}

/// How an answer says that a file could not be opened.
pub(super) fn status(found: &Found, error: &std::io::Error) -> StatusCode {
    if error.kind() == std::io::ErrorKind::NotFound {
        return StatusCode::NOT_FOUND;
    }
    tracing::warn!(?found, %error, "a file could not be opened");
    StatusCode::INTERNAL_SERVER_ERROR
}

impl Layout {
    fn find(self, path: &str) -> Option<Found> {
        let path = path.strip_prefix('/')?;
        if self == Self::Flat {
            let plain = !path.is_empty() && !path.contains('/');
            return plain.then(|| Found::plain(Shelf::Agent, path));
        }
        let (front, rest) = path.split_once('/')?;
        match front {
            "agent" => Some(Found::plain(Shelf::Agent, rest)),
            "images" => Some(Found::plain(Shelf::Images, rest)),
            "tftp" => Found::loader(rest),
            "ipxe" => Found::loader(rest.strip_prefix("binary/")?),
            _ => None,
        }
    }
}

impl Found {
    pub(super) fn plain(shelf: Shelf, name: &str) -> Self {
        Self { shelf, name: name.to_owned(), guard: None }
    }

    /// A name as TFTP has them. `None`: it is no file's, or of one that differs by machine.
    pub(super) fn loader(name: &str) -> Option<Self> {
        if iso::is_unified(name) {
            return None;
        }
        let (shelf, file) = match Wanted::read(name)? {
            Wanted::File(file) => (Shelf::Loaders, file),
            Wanted::Agent(file) => (Shelf::Agent, file),
            Wanted::Pxelinux(_) | Wanted::Autoexec | Wanted::NotAllowed => return None,
        };
        Some(Self { shelf, name: file, guard: Some(owner(name)) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Layout};
    use crate::files::Shelf;

    #[test]
    fn paths_are_smees_and_ours() {
        let mac = "52:54:00:77:00:01".parse().unwrap();
        let loader =
            |owner| Found { guard: Some(owner), ..Found::plain(Shelf::Loaders, "ipxe.efi") };
        let trace = "-00-23b1e307bb35484f535a1f772c06910e-d887dc3912240434-01";
        for (path, found) in [
            ("/ipxe/binary/ipxe.efi", Some(loader(None))),
            (&format!("/ipxe/binary/ipxe.efi{trace}"), Some(loader(None))),
            ("/ipxe/binary/52:54:00:77:00:01/ipxe.efi", Some(loader(Some(mac)))),
            ("/ipxe/binary/52-54-00-77-00-01/ipxe.efi", Some(loader(Some(mac)))),
            ("/tftp/525400770001/ipxe.efi", Some(loader(Some(mac)))),
            ("/agent/vmlinuz", Some(Found::plain(Shelf::Agent, "vmlinuz"))),
            ("/images/a/../b", Some(Found::plain(Shelf::Images, "a/../b"))),
            ("/ipxe/binary/52:54:00:77:00:01/agent-x86_64.efi", None),
            ("/ipxe/script/auto.ipxe", None),
            ("/ipxe/binary/autoexec.ipxe", None),
            ("/tftp/pxelinux.cfg/01-52-54-00-77-00-01", None),
            ("/metadata", None),
            ("agent/vmlinuz", None),
            ("/", None),
        ] {
            assert_eq!(Layout::Boot.find(path), found, "{path}");
        }
        let flat = Some(Found::plain(Shelf::Agent, "vmlinuz-x86_64"));
        assert_eq!(Layout::Flat.find("/vmlinuz-x86_64"), flat);
        assert_eq!(Layout::Flat.find("/"), None);
        assert_eq!(Layout::Flat.find("/a/b"), None);
    }
}
