//! The interface to the rest of the box.

use std::future::Future;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use status::backup::BackupSummary;
use status::reset::BoxAction;
use status::view::StatusView;
use stdx::Secret;
use tokio::sync::mpsc::Receiver;

use crate::audit::PageRequest;
use crate::setup::Setup;

/// An answer that takes a while, or a sentence why there is none.
pub type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// A file to take away.
pub struct Download {
    /// File name proposed to the browser.
    pub name: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Content of the file.
    pub body: Body,
}

/// Data and actions that the rest of the box provides for the pages.
pub trait Source: Send + Sync + 'static {
    /// The box at this moment.
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>>;
    /// Picture of the panel as PNG; `None` if the box has none.
    fn panel(&self, view: &StatusView) -> Option<Vec<u8>>;
    /// The administrator's kubeconfig with `host` (no port) as the box's address.
    fn kubeconfig(&self, host: &str) -> Option<String>;
    /// Replaces the administrator's token; the old one stops working. Blocks: it writes to disk.
    ///
    /// # Errors
    /// A sentence for people; the old token stays.
    fn rotate(&self) -> Result<(), String>;
    /// The certificate of the box's authority.
    fn ca_pem(&self) -> String;
    /// Settings of the first setup; `None` if the box is a process on another system.
    fn setup(&self) -> Option<&dyn Setup> {
        None
    }
    /// Makes a backup, encrypted with the passphrase.
    fn backup(&self, passphrase: Secret) -> SourceFuture<'_, Download>;
    /// Makes this box the one of the backup that comes in pieces.
    fn restore(
        &self,
        pieces: Receiver<Bytes>,
        passphrase: Secret,
    ) -> SourceFuture<'_, BackupSummary>;
    /// Makes this box the one of a backup that it made itself.
    fn restore_kept(&self, name: String) -> SourceFuture<'_, BackupSummary>;
    /// Writes a request to the pages into the audit log. Never waits.
    fn record(&self, request: PageRequest);
    /// Restarts, switches off or resets the box. Blocks: it writes to disk.
    ///
    /// # Errors
    /// A sentence for people; nothing was done.
    fn leave(&self, leaving: BoxAction) -> Result<(), String>;
}
