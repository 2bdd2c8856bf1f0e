//! Wiring of the web pages, and of the status view that pages, panel and monitor show.

mod audit;
mod kubeconfig;
mod machines;
mod pairing;
mod rights;
mod settings;
mod source;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use apiserver::{Authorizer, Pki};
use box_owner::users::USERS;
use box_owner::{CLAIM, Owner, PrivateFiles};
use capi::Repository;
use capi_controllers::ClusterApiSource;
use dismissals::Dismissals;
use durable_file::replace_private;
use http_edge::Tunnel;
use lifecycle::backups::Backups;
use lifecycle::copies;
use lifecycle::firmware::Firmware;
use lifecycle::names::Names;
use lifecycle::opened::LostStore;
use lifecycle::sealing;
use lifecycle::setup::Screens;
use lifecycle::storage::{FullDisk, ReturnedStore, StoppedStore};
use netboot::http::HttpService;
use provisioning::event_history::EventHistory;
use provisioning::status_sources::contested::ContestedSource;
use provisioning::status_sources::images::ImageSource;
use provisioning::status_sources::machines::MachineSource;
use status::source::StatusSource;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use web::Site;

use self::machines::PageMachines;
use self::pairing::PagePairing;
use self::settings::PageSettings;
use self::source::PageSource;
use super::Wiring;
use crate::status_builder::StatusBuilder;
use crate::status_builder::dismissed::DismissedSource;
use crate::status_builder::networks::NetworkSource;
use crate::status_builder::ownership::OwnerSource;
use crate::status_builder::system::SystemSource;

/// Ports of the pages: HTTPS, and HTTP, which only redirects to HTTPS.
const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;
/// Maximum size in bytes of a file of the owner: a code or a hash, as JSON.
const OWNER_FILE_MAX: u64 = 16 << 10;
/// Maximum size in bytes of the file of the users: each with all keys at their limit.
const USERS_FILE_MAX: u64 = 8 << 20;

/// State folder, with the owner's files.
struct StateFolder(PathBuf);

impl PrivateFiles for StateFolder {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let most = if name == USERS { USERS_FILE_MAX } else { OWNER_FILE_MAX };
        durable_file::read(&self.0.join(name), most)
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        replace_private(&self.0, name, content)?;
        copies::keep(&self.0);
        Ok(())
    }
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
        if let Some(sender) = self.target_backups.clone() {
            parts.push(Box::new(sender));
        }
        parts.push(Box::new(DismissedSource(Dismissals::new(Arc::clone(&self.objects)))));
        Ok(Arc::new(StatusBuilder {
            name: backups.name.clone(),
            clock: Arc::clone(&self.clock),
            began: Instant::now(),
            owner,
            parts,
        }))
    }

    fn page_machines(&self) -> PageMachines {
        PageMachines::new(self.bmc_reader(), (&self.index, &self.images), &self.syslog)
    }

    fn pairing(&self, authority: &str, of_its_own: bool) -> PagePairing {
        let (objects, authority) = (Arc::clone(&self.objects), authority.to_owned());
        PagePairing { objects, authority, of_its_own, turn: Mutex::default() }
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
        let settings = self.settings.clone().map(PageSettings);
        let tls = pki.page_config().context("cannot set up TLS for the pages")?;
        let own = own_names();
        let name = own[0].clone();
        let names: Vec<String> = self.config.api_names().into_iter().chain(own).collect();
        let gitlab_names = capi::gitlab_names(&names);
        let port = listener.local_addr().context("cannot read the port of the pages")?.port();
        let repository = Repository::new(env!("CARGO_PKG_VERSION"));
        let authority = pki.ca_pem().to_owned();
        let given = PageSource {
            status_builder,
            backups,
            pki,
            state,
            api_port,
            names,
            of_its_own,
            screens,
            settings,
            target_backups: self.target_backups.clone(),
            audit: self.audit.clone(),
            authorizer: Authorizer::new(self.engine.clone()),
            tokens: self.admin_tokens.clone(),
            pairing: self.pairing(&authority, of_its_own),
            consoles: Arc::clone(&self.consoles),
            machines: self.page_machines(),
            local_actions: self.local_actions(),
            updates: self.updates.clone(),
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

    use super::code_file;

    #[test]
    fn an_unclaimed_box_names_the_absolute_path_of_its_code() {
        let absolute = PathBuf::from("/var/lib/tinbox/claim.json");
        assert_eq!(code_file(Path::new("/var/lib/tinbox"), false), Some(absolute));
        let relative = code_file(Path::new("state"), false).unwrap();
        assert!(relative.is_absolute() && relative.ends_with("state/claim.json"), "{relative:?}");
        assert_eq!(code_file(Path::new("/var/lib/tinbox"), true), None);
    }
}
