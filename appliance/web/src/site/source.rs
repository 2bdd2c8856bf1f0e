//! What the pages need of the rest of the box.

use std::future::Future;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use status::backup::Report;
use status::reset::Leaving;
use status::view::StatusView;
use stdx::Secret;
use tokio::sync::mpsc::Receiver;

use crate::audit::PageRequest;
use crate::setup::Setup;

/// An answer that takes a while, or a sentence why there is none.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// A file to take away.
pub struct Download {
    /// What it may be called.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// The file.
    pub body: Body,
}

/// What the rest of the box gives to its pages.
pub trait Source: Send + Sync + 'static {
    /// The box at this moment.
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>>;
    /// What its panel shows, as PNG; `None` when it has none.
    fn panel(&self, view: &StatusView) -> Option<Vec<u8>>;
    /// The administrator's kubeconfig for somebody who reaches the box as `host` (no port).
    fn kubeconfig(&self, host: &str) -> Option<String>;
    /// Replaces the administrator's token: the old one is not taken any more. Blocks: it writes to
    /// disk.
    ///
    /// # Errors
    /// The sentence that says why the old one stays.
    fn rotate(&self) -> Result<(), String>;
    /// The certificate of the box's authority.
    fn ca_pem(&self) -> String;
    /// Who sets the box up, where that is done here.
    fn setup(&self) -> Option<&dyn Setup> {
        None
    }
    /// A backup for whoever knows the passphrase.
    fn backup(&self, passphrase: Secret) -> Answering<'_, Download>;
    /// Makes this box the one of the backup that comes in pieces.
    fn restore(&self, pieces: Receiver<Bytes>, passphrase: Secret) -> Answering<'_, Report>;
    /// Makes this box the one of a backup that it made itself.
    fn restore_kept(&self, name: String) -> Answering<'_, Report>;
    /// Writes a request to the pages into the audit log. Never waits.
    fn record(&self, request: PageRequest);
    /// Leaves the box, which goes down soon after. Blocks: it writes to disk.
    ///
    /// # Errors
    /// The sentence that says why the box goes on.
    fn leave(&self, leaving: Leaving) -> Result<(), String>;
}
