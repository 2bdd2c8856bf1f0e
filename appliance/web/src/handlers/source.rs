//! Interface between the pages and the rest of the box.

use std::future::Future;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use box_owner::users::User;
use futures_util::Stream;
use image_catalog::CheckedImage;
use machine_actions::MachineActions;
use status::access::{AccessToken, TokenRequest};
use status::backup::BackupSummary;
use status::image::ImageRequest;
use status::log::AuditLine;
use status::log::LogLine;
use status::reset::BoxAction;
use status::update::UpdateRequest;
use status::view::StatusView;
use status::view::work::WorkDetails;
use stdx::Secret;
use tokio::sync::mpsc::Receiver;

use crate::handlers::audit::PageRequest;
use crate::handlers::box_actions::pair::PairRequest;
use crate::handlers::machines::console::ConsoleStream;
use crate::handlers::setup::Setup;
use crate::handlers::setup::settings::SettingsText;
use web_pages::machine::tabs::{Section, Tab};
use web_pages::rights::Rights;

/// Reason why a process on another system has no updates.
const NO_SLOTS: &str = "This Tinbox runs as a program on a host system: update the program there.";

/// Future of a result; the error is a sentence for people.
pub type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Content of an uploaded file. The last item of an upload that was cut off is an error.
pub type FileBody = Pin<Box<dyn Stream<Item = Result<Bytes, String>> + Send>>;

/// File that the browser downloads.
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
    /// Returns the current status view of the box.
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>>;
    /// Returns the rights of a user by the roles of the API as they are stored now.
    fn rights<'a>(&'a self, user: &'a User) -> Pin<Box<dyn Future<Output = Rights> + Send + 'a>>;
    /// Renders the panel's screen as PNG; `None` if the box has no panel.
    fn panel(&self, view: &StatusView) -> Option<Vec<u8>>;
    /// Returns the administrator's kubeconfig, with `host` (without a port) as the box's address;
    /// `None` if it is not on the box.
    fn kubeconfig(&self, host: &str) -> Option<String>;
    /// Replaces the administrator's token; the old one stops working. Blocks: it writes to disk.
    ///
    /// # Errors
    /// The new token cannot be saved; the old token stays. The error is a sentence for people.
    fn rotate(&self) -> Result<(), String>;
    /// Returns the access tokens of the API.
    fn tokens(&self) -> Vec<AccessToken>;
    /// Creates an access token, and returns a kubeconfig with it and with `host` (without a port)
    /// as the box's address. Blocks: it writes to disk.
    ///
    /// # Errors
    /// The request is not valid, or the token cannot be saved. The error is a sentence for people.
    fn create_token(&self, request: &TokenRequest, host: &str) -> Result<Secret, String>;
    /// Revokes an access token by its id. Blocks: it writes to disk.
    ///
    /// # Errors
    /// There is no such token, or it is the last administrator's. The error is a sentence for
    /// people.
    fn revoke_token(&self, id: &str) -> Result<(), String>;
    /// Returns the certificate of the box's CA, as PEM.
    fn ca_pem(&self) -> String;
    /// Returns the settings of the first setup; `None` if the box is a process on another system.
    fn setup(&self) -> Option<&dyn Setup> {
        None
    }
    /// Returns the text of the settings; `None` if the box is a process on another system.
    fn settings(&self) -> Option<&dyn SettingsText> {
        None
    }
    /// Returns true if the box has a screen, and false for a process on another system.
    fn has_screen(&self) -> bool {
        self.setup().is_some()
    }
    /// Writes the update bundle from `pieces` into the slot that does not run. `at_once` lets the
    /// restart not wait for machines in use.
    ///
    /// # Errors
    /// The box has no slots, or the bundle is refused. The error is a sentence for people.
    fn install_update(&self, pieces: Receiver<Bytes>, at_once: bool) -> SourceFuture<'_, ()> {
        let _ = (pieces, at_once);
        Box::pin(async { Err(NO_SLOTS.to_owned()) })
    }
    /// Carries out a request about an update. Blocks: it writes to disk.
    ///
    /// # Errors
    /// As [`Self::install_update`].
    fn update(&self, request: UpdateRequest) -> Result<(), String> {
        let _ = request;
        Err(NO_SLOTS.to_owned())
    }
    /// Makes a backup, encrypted with the passphrase.
    fn backup(&self, passphrase: Secret) -> SourceFuture<'_, Download>;
    /// Sends a backup to the configured server soon. The status view shows the result later.
    ///
    /// # Errors
    /// No server is configured. The error is a sentence for people.
    fn send_backup(&self) -> Result<(), String> {
        Err("No other server is configured.".to_owned())
    }
    /// Restores an uploaded backup, received in pieces.
    fn restore(
        &self,
        pieces: Receiver<Bytes>,
        passphrase: Secret,
    ) -> SourceFuture<'_, BackupSummary>;
    /// Restores a backup that the box made itself, by its name.
    fn restore_kept(&self, name: String) -> SourceFuture<'_, BackupSummary>;
    /// Pairs the box with a management cluster. The result says nothing about the connection, which
    /// the status view shows later.
    fn pair(&self, request: PairRequest) -> SourceFuture<'_, ()>;
    /// Returns the output of the serial console of a machine.
    ///
    /// # Errors
    /// The machine has no serial console. The error is a sentence for people.
    fn console<'a>(&'a self, machine: &'a str) -> SourceFuture<'a, ConsoleStream> {
        Box::pin(async move { Err(format!("Machine {machine} has no serial console.")) })
    }
    /// Returns the executor of actions on machines.
    fn machine_actions(&self) -> &MachineActions;
    /// Returns the latest log lines of a machine, oldest first.
    fn machine_log(&self, machine: &str) -> Vec<LogLine> {
        let _ = machine;
        Vec::new()
    }
    /// Returns the content of a machine's tab that no event changes.
    fn machine_tab<'a>(
        &'a self,
        machine: &'a str,
        tab: Tab,
    ) -> Pin<Box<dyn Future<Output = Vec<Section>> + Send + 'a>> {
        let _ = (machine, tab);
        Box::pin(async { Vec::new() })
    }
    /// Returns a workflow with its actions; `None` if there is none with this name. If several
    /// namespaces have one, one of them counts.
    ///
    /// # Errors
    /// The workflow cannot be read. The error is a sentence for people.
    fn workflow<'a>(&'a self, name: &'a str) -> SourceFuture<'a, Option<WorkDetails>>;
    /// Lets DHCP serve again on networks that stopped because of another DHCP server, after a new
    /// search for such servers.
    fn serve_again(&self) -> SourceFuture<'_, ()> {
        Box::pin(async { Err("This box serves no network.".to_owned()) })
    }
    /// Pins, unpins or removes an image of the cache. Returns a message.
    ///
    /// # Errors
    /// The box has no such image, or the image is in use. The error is a sentence for people.
    fn image(&self, request: ImageRequest) -> SourceFuture<'_, String> {
        let _ = request;
        Box::pin(async { Err("This box has no image cache.".to_owned()) })
    }
    /// Stores an uploaded image in the cache, and creates its OSImage.
    ///
    /// # Errors
    /// The file is incomplete or no disk image, its checksum is another one, or the cache has no
    /// space. The error is a sentence for people.
    fn upload_image(&self, image: CheckedImage, body: FileBody) -> SourceFuture<'_, ()> {
        let _ = (image, body);
        Box::pin(async { Err("This box has no image cache.".to_owned()) })
    }
    /// Lets the box blink for a minute, so that a person finds it.
    fn identify(&self) {}
    /// Lets a machine blink for a minute, so that a person finds it.
    ///
    /// # Errors
    /// The machine has no BMC, or the BMC refuses. The error is a sentence for people.
    fn identify_machine<'a>(&'a self, machine: &'a str) -> SourceFuture<'a, ()> {
        Box::pin(async move { Err(format!("{machine} has no BMC.")) })
    }
    /// Writes the record of a request into the audit log. Never waits.
    fn record(&self, request: PageRequest);
    /// Returns the latest records of the audit log that contain `filter`, newest first, at most
    /// `most`. Blocks: it reads from disk.
    ///
    /// # Errors
    /// The log cannot be read. The error is a sentence for people.
    fn audit(&self, filter: &str, most: usize) -> Result<Vec<AuditLine>, String>;
    /// Restarts, switches off or resets the box. Blocks: it writes to disk.
    ///
    /// # Errors
    /// The box cannot do it; nothing was done. The error is a sentence for people.
    fn leave(&self, leaving: BoxAction) -> Result<(), String>;
}
