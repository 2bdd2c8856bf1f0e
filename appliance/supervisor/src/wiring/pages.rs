//! Wiring of the web pages, and of the status view that pages, panel and monitor show.

mod kubeconfig;
mod machines;
mod pairing;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use apiserver::Pki;
use axum::body::Bytes;
use box_owner::{CLAIM, Owner, PrivateFiles};
use capi::Repository;
use capi_controllers::ClusterApiSource;
use config::panel::DOES;
use durable_file::replace_private;
use http_edge::Tunnel;
use lifecycle::admin_tokens::Tokens;
use lifecycle::audit::Audit;
use lifecycle::backups::{BackupError, Backups};
use lifecycle::firmware::Firmware;
use lifecycle::local_actions::LocalActions;
use lifecycle::names::Names;
use lifecycle::opened::LostStore;
use lifecycle::ownership::OwnerSource;
use lifecycle::sealing;
use lifecycle::setup::Screens;
use lifecycle::storage::{FullDisk, ReturnedStore, StoppedStore};
use lifecycle::{copies, reset};
use machine_actions::MachineActions;
use netboot::http::HttpService;
use panel::backends::png;
use panel::console::Console;
use panel::screens::{Picture, monitor};
use provisioning::event_history::EventHistory;
use provisioning::status_sources::contested::ContestedSource;
use provisioning::status_sources::images::ImageSource;
use provisioning::status_sources::machines::MachineSource;
use status::backup::{BackupRequest, BackupSummary};
use status::image::ImageRequest;
use status::log::LogLine;
use status::reset::BoxAction;
use status::source::StatusSource;
use status::source::ViewSource as _;
use status::view::StatusView;
use status::view::work::WorkDetails;
use stdx::Secret;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;
use web::setup::Setup;
use web::{ConsoleStream, Download, PageRequest, PairRequest, Site, Source, SourceFuture};

use self::kubeconfig::{at_host, is_address};
use self::machines::PageMachines;
use self::pairing::PagePairing;
use super::Wiring;
use crate::consoles::{StartedConsoles, live};
use crate::status_builder::StatusBuilder;
use crate::status_builder::networks::NetworkSource;
use crate::status_builder::system::SystemSource;

/// Ports of the pages: HTTPS, and HTTP, which only redirects to HTTPS.
const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;
/// Maximum size in bytes of a file of the owner: a code or a hash, as JSON.
const OWNER_FILE_MAX: u64 = 16 << 10;
/// Maximum size of the administrator's kubeconfig in bytes.
const KUBECONFIG_MAX: u64 = 64 << 10;

/// State folder, with the owner's files.
struct StateFolder(PathBuf);

impl PrivateFiles for StateFolder {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        durable_file::read(&self.0.join(name), OWNER_FILE_MAX)
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        replace_private(&self.0, name, content)?;
        copies::keep(&self.0);
        Ok(())
    }
}

/// Data and actions of the box for the web pages.
struct PageSource {
    status_builder: Arc<StatusBuilder>,
    backups: Arc<Backups>,
    pki: Arc<Pki>,
    state: PathBuf,
    api_port: u16,
    /// Names in the certificate of the API.
    names: Vec<String>,
    /// True on firmware, where the box uses the monitor of its machine and may restart the machine.
    of_its_own: bool,
    screens: Option<Screens>,
    audit: Audit,
    tokens: Option<Arc<Tokens>>,
    pairing: PagePairing,
    consoles: StartedConsoles,
    machines: PageMachines,
    local_actions: LocalActions,
}

impl Source for PageSource {
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>> {
        self.status_builder.view()
    }

    fn panel(&self, view: &StatusView) -> Option<Vec<u8>> {
        let console = Console::new(DOES.to_vec());
        let size = if self.of_its_own { box_console::monitor::size() } else { None };
        let size = size.unwrap_or(monitor::SIZE);
        let sheet = monitor::draw(view, &console, size, Duration::ZERO);
        png::encode(&Picture::Color(sheet)).ok()
    }

    fn kubeconfig(&self, host: &str) -> Option<String> {
        let file = self.state.join("admin.kubeconfig");
        let text = String::from_utf8(durable_file::read(&file, KUBECONFIG_MAX).ok()??).ok()?;
        // The Host header of a request is untrusted.
        let is_own = is_address(host) || self.names.iter().any(|it| it.eq_ignore_ascii_case(host));
        Some(if is_own { at_host(&text, host, self.api_port) } else { text })
    }

    fn rotate(&self) -> Result<(), String> {
        let tokens = self.tokens.as_ref().ok_or("the API has not started yet")?;
        tokens.rotate().map(drop).map_err(|error| stdx::chain(&error))
    }

    fn ca_pem(&self) -> String {
        self.pki.ca_pem().to_owned()
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

    fn workflow<'a>(&'a self, name: &'a str) -> SourceFuture<'a, Option<WorkDetails>> {
        Box::pin(async { self.machines.workflow(name).await.map_err(|error| sentences(&error)) })
    }

    fn serve_again(&self) -> SourceFuture<'_, ()> {
        Box::pin(async { self.local_actions.rescan().await.map_err(|error| stdx::chain(&error)) })
    }

    fn image(&self, request: ImageRequest) -> SourceFuture<'_, String> {
        Box::pin(self.machines.images.request(request))
    }

    fn identify(&self) {
        self.local_actions.identify_state.begin();
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

    fn backup(&self, passphrase: Secret) -> SourceFuture<'_, Download> {
        Box::pin(async move {
            let order = BackupRequest { passphrase: Some(passphrase), ..BackupRequest::default() };
            let made = self.backups.create(order).await.map_err(refusal)?;
            let (name, size) = (made.name.clone(), made.last.bytes);
            Ok(Download { name, size, body: made.body(&self.backups).map_err(refusal)? })
        })
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
fn sentences(error: &(impl std::error::Error + stdx::Hint + 'static)) -> String {
    let text = stdx::sentences(error);
    tracing::warn!(reason = text, "a request of a page was refused");
    text
}

/// Returns the names of the box in the network, in addition to the configured names.
fn own_names() -> [String; 2] {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    [format!("{name}.local"), name]
}

/// Returns the absolute path of the file with the claim code; `None` if the box has an owner.
fn code_file(state: &Path, claimed: bool) -> Option<PathBuf> {
    let file = state.join(CLAIM);
    (!claimed).then(|| std::path::absolute(&file).unwrap_or(file))
}

/// Logs the pin and the file with the claim code, for a box without a screen. The code itself is
/// secret and stays out of the log.
fn log_claim(pin: &str, code_file: Option<&Path>) {
    tracing::info!(%pin, "compare this pin with the pin on the page");
    if let Some(file) = code_file {
        tracing::info!(file = %file.display(), "the box has no owner: its claim code is here");
    }
}

impl Wiring {
    /// Creates the status view from all its sources.
    pub(super) fn status_builder(
        &self,
        state: &Path,
        (key, backups): ([u8; 32], &Arc<Backups>),
        (firmware, names): (Option<&Firmware>, Option<Arc<Names>>),
        kept: Vec<String>,
    ) -> anyhow::Result<Arc<StatusBuilder>> {
        let trouble = std::env::var(platform::init::TROUBLE).unwrap_or_default();
        let trouble = trouble.lines().map(str::to_owned).chain(kept);
        let trouble = trouble.chain(lifecycle::backups::unrestored(state)).collect();
        let owner = Owner::open(Arc::new(StateFolder(state.to_owned())), Arc::clone(&self.clock))
            .context("cannot read the owner of this box")?;
        let lost = firmware.is_some() && platform::init::without_state();
        let owner = if lost { owner.out_of_reach() } else { owner };
        let owner = Arc::new(match firmware {
            Some(_) => owner.on_passphrase(sealing::at_login(state)),
            None => owner,
        });
        let config = Arc::clone(&self.config);
        let time = firmware.map(|firmware| firmware.time.clone());
        let safe = self.safe.mode.clone().unwrap_or_default();
        let live = self.settings.as_ref().map(|settings| settings.live());
        let machines = MachineSource {
            index: self.index.clone(),
            agents: Arc::clone(&self.agents),
            observers: Arc::clone(&self.observers),
        };
        let ownership = OwnerSource {
            owner: Arc::clone(&owner),
            config: Arc::clone(&config),
            key,
            state: state.to_owned(),
        };
        let start = Arc::clone(&self.start);
        // The claim needs the addresses of the interfaces, and the events need the machines, so the
        // order matters.
        let mut parts: Vec<Box<dyn StatusSource>> = vec![
            Box::new(NetworkSource::new(config, self.board.clone(), names)),
            Box::new(SystemSource::new(state.to_owned(), (time, live), (trouble, safe), start)),
            Box::new(ownership),
            Box::new(machines),
            Box::new(EventHistory::new(self.engine.clone(), self.index.clone())),
            Box::new(ImageSource::new(self.images.clone())),
            Box::new(ClusterApiSource {
                objects: Arc::clone(&self.objects),
                signals: Arc::clone(&self.cluster_signals),
            }),
            Box::new(self.identify_state.clone()),
            Box::new(Arc::clone(backups)),
            Box::new(ReturnedStore::find(state)),
            Box::new(ContestedSource(self.index.clone())),
            Box::new(LostStore(self.safe.lost.clone())),
            Box::new(StoppedStore(self.engine.clone())),
            Box::new(FullDisk::new(backups.store.clone())),
        ];
        if let Some(updates) = self.updates.clone() {
            parts.push(Box::new(updates));
        }
        Ok(Arc::new(StatusBuilder {
            name: backups.name.clone(),
            clock: Arc::clone(&self.clock),
            began: Instant::now(),
            owner,
            parts,
        }))
    }

    /// Serves the pages: on all addresses as firmware, else at the configured address.
    pub(super) async fn pages(
        &mut self,
        state: &Path,
        pki: Arc<Pki>,
        (status_builder, backups): (Arc<StatusBuilder>, Arc<Backups>),
        of_its_own: bool,
    ) -> anyhow::Result<()> {
        let listener = match &self.config.web {
            _ if of_its_own => everywhere(HTTPS_PORT).await?,
            Some(web) => self.listen("the pages", web.listen).await?,
            None => return Ok(()),
        };
        let api_port = self.config.api.listen.port();
        let (owner, state) = (Arc::clone(&status_builder.owner), state.to_owned());
        if !of_its_own {
            log_claim(&backups.pin, code_file(&state, owner.claimed()).as_deref());
        }
        let screens = self.settings.clone().map(Screens);
        let tls = pki.page_config().context("cannot set up TLS for the pages")?;
        let own = own_names();
        let name = own[0].clone();
        let names: Vec<String> = self.config.api_names().into_iter().chain(own).collect();
        let gitlab_names = capi::gitlab_names(&names);
        let port = listener.local_addr().context("cannot read the port of the pages")?.port();
        let repository = Repository::new(env!("CARGO_PKG_VERSION"));
        let authority = pki.ca_pem().to_owned();
        let (audit, tokens) = (self.audit.clone(), self.admin_tokens.clone());
        let pairing = PagePairing {
            objects: Arc::clone(&self.objects),
            authority: authority.clone(),
            of_its_own,
            turn: Mutex::default(),
        };
        let given = PageSource {
            status_builder,
            backups,
            pki,
            state,
            api_port,
            names,
            of_its_own,
            screens,
            audit,
            tokens,
            pairing,
            consoles: Arc::clone(&self.consoles),
            machines: PageMachines::new(&self.objects, (&self.index, &self.images), &self.syslog),
            local_actions: self.local_actions(),
        };
        let site = Site::new(owner, Arc::new(given));
        if of_its_own {
            let plain = everywhere(HTTP_PORT).await?;
            let pages = web::plain(site.clone(), HTTPS_PORT);
            let shutdown = self.shutdown.clone();
            self.spawn("plain pages", async move {
                netboot::http::serve(plain, pages, shutdown).await;
                Ok(())
            });
        }
        let shutdown = self.shutdown.clone();
        let release = capi::router(repository, name, port, authority);
        let pages = HttpService::from(web::router(site).merge(release.clone()))
            .with_tunnel(Tunnel::new(gitlab_names, port, Arc::clone(&tls), release));
        self.spawn("pages", async move {
            netboot::http::serve_tls(listener, tls, pages, shutdown).await;
            Ok(())
        });
        Ok(())
    }
}

/// Listens on all IPv6 and IPv4 addresses, or only on IPv4 if the kernel has no IPv6.
async fn everywhere(port: u16) -> anyhow::Result<TcpListener> {
    let both = TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await;
    match both {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
            .await
            .with_context(|| format!("cannot listen on port {port} for the pages")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{BackupError, code_file, sentences};

    #[test]
    fn an_unclaimed_box_names_the_absolute_path_of_its_code() {
        let absolute = PathBuf::from("/var/lib/tinbox/claim.json");
        assert_eq!(code_file(Path::new("/var/lib/tinbox"), false), Some(absolute));
        let relative = code_file(Path::new("state"), false).unwrap();
        assert!(relative.is_absolute() && relative.ends_with("state/claim.json"), "{relative:?}");
        assert_eq!(code_file(Path::new("/var/lib/tinbox"), true), None);
    }

    #[test]
    fn a_page_has_the_error_and_its_hint_as_sentences() {
        let busy = "Another backup or restore is under way. Wait until the other backup or \
                    restore has ended.";
        assert_eq!(sentences(&BackupError::Busy), busy);
        assert_eq!(sentences(&BackupError::Ended).matches('.').count(), 1);
    }
}
