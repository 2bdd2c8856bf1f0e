//! Data and actions of the box for the web pages.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use apiserver::{Authorizer, Pki};
use axum::body::Bytes;
use box_owner::users::User;
use image_catalog::CheckedImage;
use lifecycle::audit::Audit;
use lifecycle::backups::{BackupError, Backups};
use lifecycle::local_actions::LocalActions;
use lifecycle::reset;
use lifecycle::setup::Screens;
use lifecycle::update::Updates;
use machine_actions::MachineActions;
use panel::backends::png;
use panel::console::Console;
use panel::model::ACTIONS;
use panel::screens::{Picture, monitor};
use status::access::{AccessToken, TokenRequest};
use status::backup::{BackupRequest, BackupSummary};
use status::image::ImageRequest;
use status::log::{AuditLine, LogLine};
use status::reset::BoxAction;
use status::source::ViewSource as _;
use status::update::UpdateRequest;
use status::view::StatusView;
use status::view::work::WorkDetails;
use stdx::Secret;
use tokio::sync::mpsc::Receiver;
use web::setup::Setup;
use web::setup::settings::SettingsText;
use web::{ConsoleStream, Download, FileBody, PageRequest, PairRequest, Source, SourceFuture};
use web_pages::machine::tabs::{Section, Tab};
use web_pages::rights::Rights;

use super::kubeconfig::{at_host, is_address};
use super::machines::PageMachines;
use super::pairing::PagePairing;
use super::settings::PageSettings;
use super::{audit, rights};
use crate::access_tokens::Tokens;
use crate::consoles::{StartedConsoles, live};
use crate::status_builder::StatusBuilder;
use crate::wiring::backups::TargetBackups;

/// Maximum size of the administrator's kubeconfig in bytes.
const KUBECONFIG_MAX: u64 = 64 << 10;
/// Reason why the box has no tokens yet.
const NO_API: &str = "the API has not started yet";

/// Reason why no backup can be sent.
const NO_TARGET: &str = "No other server is configured: set [backup] in the settings.";

/// Reason why the box takes no updates.
const NO_UPDATES: &str = "This Tinbox was not started from a system slot, so it takes no updates.";

/// Data and actions of the box for the web pages.
pub(super) struct PageSource {
    pub status_builder: Arc<StatusBuilder>,
    pub backups: Arc<Backups>,
    pub pki: Arc<Pki>,
    pub state: PathBuf,
    pub api_port: u16,
    /// Names in the certificate of the API.
    pub names: Vec<String>,
    /// True on firmware, where the box uses the monitor of its machine and may restart the machine.
    pub of_its_own: bool,
    pub screens: Option<Screens>,
    pub settings: Option<PageSettings>,
    pub target_backups: Option<Arc<TargetBackups>>,
    pub audit: Audit,
    pub authorizer: Authorizer,
    pub tokens: Option<Arc<Tokens>>,
    pub pairing: PagePairing,
    pub consoles: StartedConsoles,
    pub machines: PageMachines,
    pub local_actions: LocalActions,
    pub updates: Option<Arc<Updates>>,
}

impl PageSource {
    /// Returns a kubeconfig with `host` as the box's address, unless `host` is not a name of the
    /// box: the Host header of a request is untrusted.
    fn reached_at(&self, kubeconfig: &str, host: &str) -> String {
        let is_own = is_address(host) || self.names.iter().any(|it| it.eq_ignore_ascii_case(host));
        if is_own { at_host(kubeconfig, host, self.api_port) } else { kubeconfig.to_owned() }
    }
}

impl Source for PageSource {
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>> {
        self.status_builder.view()
    }

    fn rights<'a>(&'a self, user: &'a User) -> Pin<Box<dyn Future<Output = Rights> + Send + 'a>> {
        Box::pin(rights::of(&self.authorizer, user))
    }

    fn audit(&self, filter: &str, most: usize) -> Result<Vec<AuditLine>, String> {
        let read = audit::latest(&self.audit.log(), filter, most);
        read.map_err(|error| format!("The box cannot read its audit log: {error}."))
    }

    fn panel(&self, view: &StatusView) -> Option<Vec<u8>> {
        let console = Console::new(ACTIONS.to_vec());
        let size = if self.of_its_own { box_console::monitor::size() } else { None };
        let size = size.unwrap_or(monitor::SIZE);
        let sheet = monitor::draw(view, &console, size, Duration::ZERO);
        png::encode(&Picture::Color(sheet)).ok()
    }

    fn kubeconfig(&self, host: &str) -> Option<String> {
        let file = self.state.join("admin.kubeconfig");
        let text = String::from_utf8(durable_file::read(&file, KUBECONFIG_MAX).ok()??).ok()?;
        Some(self.reached_at(&text, host))
    }

    fn rotate(&self) -> Result<(), String> {
        let tokens = self.tokens.as_ref().ok_or(NO_API)?;
        tokens.rotate().map(drop).map_err(|error| stdx::chain(&error))
    }

    fn tokens(&self) -> Vec<AccessToken> {
        self.tokens.as_ref().map(|tokens| tokens.list()).unwrap_or_default()
    }

    fn create_token(&self, request: &TokenRequest, host: &str) -> Result<Secret, String> {
        let tokens = self.tokens.as_ref().ok_or(NO_API)?;
        let made = tokens.create(request).map_err(|error| stdx::chain(&error))?;
        Ok(Secret::from(self.reached_at(made.expose(), host)))
    }

    fn revoke_token(&self, id: &str) -> Result<(), String> {
        let tokens = self.tokens.as_ref().ok_or(NO_API)?;
        tokens.revoke(id).map(drop).map_err(|error| stdx::chain(&error))
    }

    fn ca_pem(&self) -> String {
        self.pki.ca_pem().to_owned()
    }

    fn settings(&self) -> Option<&dyn SettingsText> {
        self.settings.as_ref().map(|settings| settings as _)
    }

    fn setup(&self) -> Option<&dyn Setup> {
        self.screens.as_ref().map(|screens| screens as &dyn Setup)
    }

    fn leave(&self, leaving: BoxAction) -> Result<(), String> {
        if !self.of_its_own {
            return Err(reset::NOT_OWN.to_owned());
        }
        reset::carry_out(leaving, "page", &self.audit)
    }

    fn machine_actions(&self) -> &MachineActions {
        &self.machines.actions
    }

    fn machine_log(&self, machine: &str) -> Vec<LogLine> {
        self.machines.log(machine)
    }

    fn machine_tab<'a>(
        &'a self,
        machine: &'a str,
        tab: Tab,
    ) -> Pin<Box<dyn Future<Output = Vec<Section>> + Send + 'a>> {
        Box::pin(self.machines.tab(machine, tab))
    }

    fn workflow<'a>(&'a self, name: &'a str) -> SourceFuture<'a, Option<WorkDetails>> {
        Box::pin(async { self.machines.workflow(name).await.map_err(|error| sentences(&error)) })
    }

    fn serve_again(&self) -> SourceFuture<'_, ()> {
        Box::pin(async { self.local_actions.rescan().await.map_err(|error| stdx::chain(&error)) })
    }

    fn image(&self, request: ImageRequest) -> SourceFuture<'_, String> {
        Box::pin(self.machines.images.request(request))
    }

    fn upload_image(&self, image: CheckedImage, body: FileBody) -> SourceFuture<'_, ()> {
        Box::pin(self.machines.upload_image(image, body))
    }

    fn identify(&self) {
        self.local_actions.identify_state.begin();
    }

    fn identify_machine<'a>(&'a self, machine: &'a str) -> SourceFuture<'a, ()> {
        self.local_actions.machine_leds.identify(machine)
    }

    fn record(&self, request: PageRequest) {
        self.audit.page(&request);
    }

    fn console<'a>(&'a self, machine: &'a str) -> SourceFuture<'a, ConsoleStream> {
        Box::pin(async move {
            let consoles = self.consoles.get().ok_or("The serial consoles are not started yet.")?;
            let attached = consoles.attach(machine).await;
            attached.map(live).map_err(|_| format!("Machine {machine} has no serial console."))
        })
    }

    fn install_update(&self, pieces: Receiver<Bytes>, at_once: bool) -> SourceFuture<'_, ()> {
        Box::pin(async move {
            let updates = self.updates.as_ref().ok_or(NO_UPDATES)?;
            let done = updates.install(pieces, None, at_once).await;
            done.map_err(|error| stdx::sentences(&error))
        })
    }

    fn update(&self, request: UpdateRequest) -> Result<(), String> {
        let updates = self.updates.as_ref().ok_or(NO_UPDATES)?;
        let done = match request {
            UpdateRequest::RollBack => updates.roll_back(false),
            UpdateRequest::Restart => updates.agree(false),
        };
        done.map_err(|error| stdx::sentences(&error))
    }

    fn backup(&self, passphrase: Secret) -> SourceFuture<'_, Download> {
        Box::pin(async move {
            let order = BackupRequest { passphrase: Some(passphrase), ..BackupRequest::default() };
            let made = self.backups.create(order).await.map_err(refusal)?;
            let (name, size) = (made.name.clone(), made.last.bytes);
            Ok(Download { name, size, body: made.body(&self.backups).map_err(refusal)? })
        })
    }

    fn send_backup(&self) -> Result<(), String> {
        let sender = self.target_backups.as_ref().ok_or(NO_TARGET)?;
        sender.send_now();
        Ok(())
    }

    fn restore_kept(&self, name: String) -> SourceFuture<'_, BackupSummary> {
        Box::pin(async move { self.backups.restore_kept(name).await.map_err(refusal) })
    }

    fn restore(
        &self,
        pieces: Receiver<Bytes>,
        passphrase: Secret,
    ) -> SourceFuture<'_, BackupSummary> {
        Box::pin(
            async move { self.backups.restore(pieces, Some(passphrase)).await.map_err(refusal) },
        )
    }

    fn pair(&self, request: PairRequest) -> SourceFuture<'_, ()> {
        Box::pin(self.pairing.pair(request))
    }
}

/// Returns the text of an error of a backup, as [`sentences`].
fn refusal(error: BackupError) -> String {
    sentences(&error)
}

/// Returns the text of an error for a page, and logs it.
pub(super) fn sentences(error: &(impl std::error::Error + stdx::Hint + 'static)) -> String {
    let text = stdx::sentences(error);
    tracing::warn!(reason = text, "a request of a page was refused");
    text
}

#[cfg(test)]
mod tests {
    use super::{BackupError, sentences};

    #[test]
    fn a_page_has_the_error_and_its_hint_as_sentences() {
        let busy = "Another backup or restore is under way. Wait until the other backup or \
                    restore has ended.";
        assert_eq!(sentences(&BackupError::Busy), busy);
        assert_eq!(sentences(&BackupError::Ended).matches('.').count(), 1);
    }
}
