//! Opening of the store at a start, and operation without a store that is lost.
//!
//! A box whose store is damaged or missing still serves its page, its panel and the error responses
//! of its API. The box runs in safe mode on an empty store in memory. Requests for objects get an
//! error, because clients would trust an empty list. The damaged file stays in its place until a
//! person requests a restore or a factory reset.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::catch_unwind;
use std::path::Path;

use anyhow::Context as _;
use apiserver::failure;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use config::SystemKind;
use status::source::{Filling, StatusSource};
use status::view::{Fault, StatusView, Trouble};
use store::Store;
use tempfile::TempDir;

use crate::keys::sealing::Keys;
use crate::storage;

/// Permission bits of the group and of other users.
const OTHERS: u32 = 0o077;
/// File that the first start creates after the store. If only this file exists, the store was lost.
const LATER: &str = "boot-token.key";
/// Path prefixes that are served without the store, because their responses contain no objects.
const ANSWERED: [&str; 5] = ["/apis/box.tinbox.dev/", "/backup", "/healthz", "/livez", "/version"];

/// Opened store, and the reason if it replaces a lost store.
pub struct OpenedStore {
    /// Store to read and write.
    pub store: Store,
    /// Reason why the stored objects cannot be read; `None` for the box's own store.
    pub lost: Option<String>,
    /// Folder of the empty store in memory, removed on drop; `None` for the box's own store.
    pub folder: Option<TempDir>,
}

/// Opens the store in the folder `state`. Firmware continues with an empty store if the store is
/// lost. A guest returns the error to its operator.
///
/// # Errors
/// The folder cannot be created, or the store of a guest is damaged or missing. Another process has
/// the store open, or a conversion of the store lacks disk space: a later attempt may succeed.
pub fn open(state: &Path, system_kind: SystemKind) -> anyhow::Result<OpenedStore> {
    std::fs::create_dir_all(state)
        .with_context(|| format!("cannot create the state folder {}", state.display()))?;
    if let Err(error) = close(state) {
        tracing::warn!(%error, "other users of this system may read the state folder");
    }
    let is_gone = !storage::file(state).exists() && state.join(LATER).exists();
    let keys = std::panic::AssertUnwindSafe(Keys::of(state, system_kind));
    let opened = match is_gone {
        true => Err(anyhow::anyhow!("{} is missing", storage::file(state).display())),
        // The database may panic on pages that a failing disk has changed.
        false => catch_unwind(|| storage::open_by(state, &keys)).unwrap_or_else(|_| {
            let file = storage::file(state);
            Err(anyhow::anyhow!("cannot open the store: {} is damaged", file.display()))
        }),
    };
    let error = match opened {
        Ok(store) => return Ok(OpenedStore { store, lost: None, folder: None }),
        Err(error) => error,
    };
    let cause = error.downcast_ref::<store::Error>();
    let may_pass = matches!(cause, Some(store::Error::InUse { .. } | store::Error::NoRoom { .. }));
    if system_kind == SystemKind::Guest || may_pass {
        return Err(error);
    }
    let lost = format!("{error:#}");
    tracing::error!(lost, "the box starts without its stored data");
    let folder = tempfile::Builder::new().prefix("tinbox-without-store-").tempdir();
    let folder = folder.context("cannot create a folder for an empty store")?;
    let store = storage::open_aside(folder.path())?;
    Ok(OpenedStore { store, lost: Some(lost), folder: Some(folder) })
}

/// Removes all permissions of other users, because former releases made some files readable.
fn close(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() && metadata.permissions().mode() & OTHERS != 0 {
            std::fs::set_permissions(entry.path(), Permissions::from_mode(0o600))?;
        }
    }
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Rejects API requests for objects while the store is lost. `lost` is the reason.
pub fn refused(router: Router, lost: Option<&str>) -> Router {
    let Some(why) = lost else { return router };
    let message = format!(
        "the stored data of this box cannot be read ({why}): restore a backup, see \
         `tinbox backup list`"
    );
    router.layer(from_fn(move |request: Request, next: Next| {
        let message = message.clone();
        async move { answered(request, next, &message).await }
    }))
}

async fn answered(request: Request, next: Next, message: &str) -> Response {
    let path = request.uri().path();
    if ANSWERED.iter().any(|answered| path.starts_with(answered)) {
        return next.run(request).await;
    }
    if path.starts_with("/readyz") {
        return (StatusCode::INTERNAL_SERVER_ERROR, "[-]store failed: reason withheld\n")
            .into_response();
    }
    failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

/// Status source of the fault that the store is lost, with the way to restore it.
pub struct LostStore(pub Option<String>);

impl StatusSource for LostStore {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        view.faults.extend(self.0.as_deref().map(fault));
        Box::pin(std::future::ready(()))
    }
}

fn fault(why: &str) -> Fault {
    let trouble = Trouble {
        what: "The stored data of this box cannot be read".into(),
        why: why.into(),
        now: "No machine is served; restore a backup, on the page Box or with `tinbox backup \
              restore`"
            .into(),
        code: "StoreLost".into(),
        ..Trouble::default()
    };
    Fault { title: "STORE LOST".into(), trouble, urgent: true, ..Fault::default() }
}

#[cfg(test)]
mod tests;
