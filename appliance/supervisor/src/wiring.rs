//! Starts all services, with one function for each, and stops the process when one of them ends.

mod api;
mod backups;
mod boot;
mod cluster_api;
mod consoles;
mod controllers;
mod device;
mod machine_leds;
mod own_addresses;
mod pages;
mod sightings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::controllers::enrollment::{Enrollment, ReportInbox, ReportQueue};
use agent_rpc::Pin;
use agent_service::TokenUse;
use anyhow::Context as _;
use apiserver::Pki;
use audit_log::AuditLog;
use capi_controllers::signals::AllClusterApiSignals;
use config::Config;
use futures_util::FutureExt as _;
use lifecycle::audit::Audit;
use lifecycle::firmware::Firmware;
use lifecycle::local_actions::IdentifyState;
use lifecycle::opened::OpenedStore;
use lifecycle::reset;
use lifecycle::settings::Settings;
use lifecycle::update::Updates;
use metadata::PowerHooks;
use neighbor_times::NeighborTimes;
use netboot::http::HttpService;
use objects::Objects;
use platform::liveness::LivenessMonitor;
use provisioning::boot_token::{self, BootTokens};

use provisioning::agent_backend::AgentBackend;
use provisioning::hardware_views::HardwareViews;
use provisioning::images::Images;
use provisioning::index::Index;
use provisioning::learned_loaders::{self, LearnedLoader, Loaders};
use provisioning::networks::Networks;
use provisioning::networks::board::Board;
use provisioning::networks::leases::OpenLeases;
use provisioning::objects::EngineObjects;
use provisioning::observers::Observers;
use provisioning::recorder::recorder;
use resources::{Engine, builtin, roles};
use status::reset::BoxAction;
use stdx::{Clock, SystemClock};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::backups::TargetBackups;
use crate::access_tokens::Tokens;
use crate::bmc_readings::StartedDrivers;
use crate::consoles::StartedConsoles;
use crate::start::{Start, Step};

/// TCP port of the agents' gRPC service, as in Tinkerbell.
const AGENT_PORT: u16 = 42113;
/// Maximum time that the services may take to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Parts of the box that several services share.
struct Wiring {
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    engine: Engine,
    objects: Arc<dyn Objects>,
    cluster_signals: Arc<AllClusterApiSignals>,
    index: Index,
    observers: Arc<Observers>,
    views: Arc<HardwareViews>,
    power_hooks: Arc<PowerHooks>,
    neighbor_times: Arc<NeighborTimes>,
    agents: Arc<agent_service::Service>,
    images: Images,
    /// Updates of the system; `None` on a guest, or on a system without slots.
    updates: Option<Arc<Updates>>,
    settings: Option<Arc<Settings>>,
    target_backups: Option<Arc<TargetBackups>>,
    leases: OpenLeases,
    safe: SafeModeReasons,
    syslog: Arc<syslog::Log>,
    liveness: Arc<LivenessMonitor>,
    board: Board,
    identify_state: IdentifyState,
    audit: Audit,
    admin_tokens: Option<Arc<Tokens>>,
    consoles: StartedConsoles,
    bmc_drivers: StartedDrivers,
    start: Arc<Start>,
    services: JoinSet<(&'static str, anyhow::Result<()>)>,
    shutdown: CancellationToken,
}

/// Reasons for safe mode, or for operation without the store.
#[derive(Default)]
struct SafeModeReasons {
    /// Reason for safe mode, in which no machine is served or changed; `None` in normal operation.
    mode: Option<String>,
    /// Reason why the stored objects cannot be read; `None` if they are readable.
    lost: Option<String>,
}

/// Runs the box until SIGTERM or SIGINT, or until a service ends. `kept` is the opened store, and
/// sentences about files that were damaged.
///
/// # Errors
/// A service could not be started, or ended. A service that ends also ends the process. Process 1
/// or the host then starts the process again.
pub async fn run(
    state: &Path,
    kept: (OpenedStore, Vec<String>),
    (config, file): (Config, PathBuf),
    firmware: Option<Firmware>,
) -> anyhow::Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (OpenedStore { store, lost, folder: _folder }, trouble) = kept;
    let registry = builtin::registry().context("two kinds have the same name")?;
    let engine = Engine::new(store.clone(), registry, Arc::clone(&clock));
    engine.ensure_permanent().await.context("cannot create the first objects")?;
    roles::ensure(&engine).await.context("cannot create the first roles")?;
    let tokens = BootTokens::ensure(state)?;

    let images = Images::open(&config, state).context("cannot open the images' cache")?;

    let names = capi::with_gitlab_names(config.api_names());
    let pki =
        Pki::ensure(state, &names, clock.now()).context("cannot prepare the API's certificates")?;
    let certificate = pki.server_certificate().context("cannot read the box's certificate")?;
    let pin = Pin::of(&certificate).context("cannot use the box's certificate")?;
    let pki = Arc::new(pki);
    let audit = AuditLog::open(state).context("cannot open the audit log")?;
    let audit = Audit::new(audit, Arc::clone(&clock));
    let mut wiring = Wiring::new(config, clock, engine, (tokens, pin), (images, audit));
    wiring.settings = firmware.as_ref().map(|_| wiring.settings(state));
    wiring.updates = firmware.as_ref().and_then(|_| wiring.updates(state, &store));
    let mode = firmware.as_ref().and_then(|firmware| firmware.safe_mode.clone());
    if let Some(why) = &mode {
        wiring.audit.local("process 1", "safe-mode", why, true);
    }
    wiring.safe = SafeModeReasons { mode, lost };
    let backups = wiring.backups(state, file, (&store, pin.bytes()), firmware.as_ref());
    wiring.target_backups(&backups)?;
    let names = firmware.as_ref().map(|firmware| wiring.names(&pki, firmware));
    let own = (firmware.as_ref(), names);
    let status_builder = wiring.status_builder(state, (pin.bytes(), &backups), own, trouble)?;
    wiring.keep(state, store.clone());
    wiring.start.begin(Step::Api);
    wiring.collector(&pki);
    let asked_at = wiring.api(state, &pki, (&backups, &status_builder, firmware.is_some())).await?;
    wiring.copies(state);
    wiring.start.begin(Step::Objects);
    wiring.controllers(state, Arc::clone(&status_builder.owner)).await?;
    wiring.start.begin(Step::BootFiles);
    if let Some(firmware) = &firmware {
        wiring.fronts(&status_builder);
        wiring.serial(&status_builder);
        wiring.time(firmware).await;
    }
    wiring.boot_files(&pki).await?;
    wiring.start.begin(Step::Services);
    wiring.networks(state).await?;
    wiring.agents(state, &pki).await?;
    wiring.pages(state, Arc::clone(&pki), (status_builder, backups), firmware.is_some()).await?;
    if let Some(updates) = wiring.updates.clone() {
        wiring.proving(&pki, (asked_at, store.clone()), updates)?;
    }
    if firmware.is_some() {
        wiring.liveness(&pki, asked_at, store)?;
        let audit = wiring.audit.clone();
        box_console::power_button::listen(move || {
            // `carry_out` logs its error.
            let _ = reset::carry_out(BoxAction::PowerOff, "power button", &audit);
        });
    }
    wiring.start.done();
    tracing::info!(state = %state.display(), "tinboxd is ready");
    wiring.watch().await
}

/// Returns the secret from which the keys of power hooks are derived: a token that no agent gets,
/// because no workflow has this UID.
fn power_hook_secret(tokens: &BootTokens) -> String {
    tokens.token(TokenUse::EveryBoot, "tinbox", "power hooks")
}

impl Wiring {
    fn new(
        config: Config,
        clock: Arc<dyn Clock>,
        engine: Engine,
        (tokens, pin): (BootTokens, Pin),
        (images, audit): (Images, Audit),
    ) -> Self {
        let (config, index) = (Arc::new(config), Index::default());
        let (shutdown, mut services) = (CancellationToken::new(), JoinSet::new());
        let (recorder, writer) = recorder();
        let writing = writer.run(engine.clone(), shutdown.clone());
        services.spawn(async move {
            writing.await;
            ("events", Ok(()))
        });
        let objects = EngineObjects { engine: engine.clone(), recorder: recorder.clone() };
        let objects: Arc<dyn Objects> = Arc::new(objects);
        let ((loaders, lessons), (report_inbox, reports)) = (Loaders::new(), ReportInbox::new());
        let (loaders, syslog) = (Arc::new(loaders), Arc::<syslog::Log>::default());
        let (now, learned) = (Arc::clone(&clock), Arc::clone(&loaders));
        let observers = Arc::new(Observers::new(index.clone(), recorder, now, learned));
        let power_hooks = Arc::new(PowerHooks::new(power_hook_secret(&tokens).as_bytes()));
        let views = Arc::new(HardwareViews {
            index: index.clone(),
            tokens,
            pin,
            config: Arc::clone(&config),
            clock: Arc::clone(&clock),
            loaders,
        });
        let backend = AgentBackend {
            views: Arc::clone(&views),
            observers: Arc::clone(&observers),
            report_inbox,
            images: images.clone(),
            log: Arc::clone(&syslog),
        };
        let agents = backend.service(&objects, shutdown.clone());
        let wiring = Self {
            config,
            clock,
            engine,
            objects,
            cluster_signals: Arc::default(),
            index,
            observers,
            views,
            power_hooks,
            neighbor_times: Arc::default(),
            agents,
            images,
            updates: None,
            settings: None,
            target_backups: None,
            leases: OpenLeases::default(),
            safe: SafeModeReasons::default(),
            syslog,
            liveness: Arc::default(),
            board: Board::default(),
            identify_state: IdentifyState::default(),
            audit,
            admin_tokens: None,
            consoles: Arc::default(),
            bmc_drivers: Arc::default(),
            start: Arc::default(),
            services,
            shutdown,
        };
        wiring.with_upkeep(lessons, reports)
    }

    /// Starts the tasks that write facts from boots and agents into Hardware objects.
    fn with_upkeep(mut self, lessons: Receiver<LearnedLoader>, reports: ReportQueue) -> Self {
        let (objects, shutdown) = (Arc::clone(&self.objects), self.shutdown.clone());
        let enrollment = self.config.agents.enrollment;
        let controller =
            Enrollment::new(&objects, Arc::new(self.index.clone()), &self.clock, enrollment);
        self.spawn("upkeep of hardware", async move {
            let learning = learned_loaders::keep(objects.as_ref(), lessons);
            let both = async { tokio::join!(learning, controller.run(reports)) };
            shutdown.run_until_cancelled(both).await;
            Ok(())
        });
        self
    }

    fn spawn(
        &mut self,
        name: &'static str,
        service: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.services.spawn(async move { (name, service.await) });
    }

    async fn listen(&self, what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
        TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address} for {what}"))
    }

    /// Runs DHCP on every network as its Network object specifies, and provides the control-plane
    /// endpoints. Does neither in safe mode, and gives back the addresses of an earlier process.
    async fn networks(&mut self, state: &Path) -> anyhow::Result<()> {
        if self.safe.mode.is_some() {
            endpoints::give_back_all(&endpoints::KernelAddresses).await;
            return Ok(());
        }
        let networks = Networks {
            engine: self.engine.clone(),
            objects: Arc::clone(&self.objects),
            views: Arc::clone(&self.views),
            index: self.index.clone(),
            observers: Arc::clone(&self.observers),
            clock: Arc::clone(&self.clock),
            config: Arc::clone(&self.config),
            board: self.board.clone(),
            leases: self.leases.clone(),
            state: state.to_owned(),
            loop_signal: self.liveness.loop_signal("the loop of the networks"),
        };
        networks.adopt().await?;
        let running = networks.run(self.shutdown.clone());
        self.spawn("networks", async move {
            running.await;
            Ok(())
        });
        self.endpoints();
        Ok(())
    }

    async fn agents(&mut self, state: &Path, pki: &Pki) -> anyhow::Result<()> {
        boot_token::restore(&self.agents, state);
        let (keeping, shutdown) = (Arc::clone(&self.agents), self.shutdown.clone());
        let keeping = boot_token::keep(keeping, state.to_owned());
        self.spawn("boots of tokens", async move {
            shutdown.run_until_cancelled(keeping).await;
            Ok(())
        });
        let tls = pki.server_config().context("cannot set up TLS for agents")?;
        // Stock agents have no pin for the box's certificate, so they may need to connect without
        // TLS.
        let plain = self.config.agents.permissive;
        let routes = agent_rpc::server::routes(Arc::clone(&self.agents) as _);
        // Same HTTP stack as for boot files: it probes idle connections, so that connections of
        // machines that were switched off do not accumulate.
        let service = HttpService::from(routes).for_unknown_clients().for_lasting_connections();
        let service = service.for_known_clients();
        for network in self.config.networks.clone() {
            let address = SocketAddr::from((network.address, AGENT_PORT));
            let (tls, service, shutdown) =
                (Arc::clone(&tls), service.clone(), self.shutdown.clone());
            let open = move || {
                let (tls, service, shutdown) =
                    (Arc::clone(&tls), service.clone(), shutdown.clone());
                async move {
                    let listener = boot::listen_at("agents", address).await?;
                    let served =
                        netboot::http::serve_tls_or_plain(listener, tls, plain, service, shutdown);
                    Ok(Box::pin(served.map(Ok)) as boot::ServiceFuture)
                }
            };
            self.serve_when_open("the agents' port", &network.interface, open).await;
        }
        Ok(())
    }

    async fn watch(mut self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot receive signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot receive signals")?;
        let ended = tokio::select! {
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            ended = self.services.join_next() => ended,
        };
        self.shutdown.cancel();
        match ended {
            None => {
                tracing::info!("stopping on request");
                let rest = async { while self.services.join_next().await.is_some() {} };
                if tokio::time::timeout(STOP_GRACE, rest).await.is_err() {
                    tracing::warn!("some services did not stop in time");
                }
                Ok(())
            }
            Some(Ok((name, Ok(())))) => anyhow::bail!("service {name} stopped unexpectedly"),
            Some(Ok((name, Err(error)))) => Err(error.context(format!("service {name} failed"))),
            Some(Err(error)) => Err(error).context("a service panicked"),
        }
    }
}
