//! Puts the services together, one function each, and watches over them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use apiserver::{AdminAccess, Collector, Engine, Gate, Pki, builtin, roles};
use controllers::job::JobReconciler;
use controllers::machine::MachineReconciler;
use controllers::runtime::{Controller, Reconciler, Signals};
use controllers::task::TaskReconciler;
use controllers::workflow::{Patience, WorkflowReconciler};
use controllers::{BmcDrivers, Objects};
use jiff::SignedDuration;
use stdx::{Clock, SystemClock};
use store::{SealingKey, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agents::AgentService;
use crate::boot_token::BootTokens;
use crate::config::Config;
use crate::hardware_views::HardwareViews;
use crate::index::Index;
use crate::live;
use crate::objects::EngineObjects;
use crate::observers::Observers;
use crate::pump::{KINDS, Pump, Wakes};
use crate::recorder::recorder;

/// Boot files, scripts, metadata.
const HTTP_PORT: u16 = 7080;
/// Metadata where CAPT's default template looks for it.
const METADATA_PORT: u16 = 50061;
/// Agents.
const AGENT_PORT: u16 = 42113;
/// How long reading everything that is stored may take.
const LIST_WAIT: Duration = Duration::from_secs(60);
/// How long services may take to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// TFTP.
const TFTP_PORT: u16 = 69;

/// Everything a service may need.
struct Wiring {
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    engine: Engine,
    objects: Arc<dyn Objects>,
    index: Index,
    observers: Arc<Observers>,
    views: Arc<HardwareViews>,
    agents: Arc<AgentService>,
    services: JoinSet<(&'static str, anyhow::Result<()>)>,
    shutdown: CancellationToken,
}

/// Kinds whose values lie sealed on disk: BMC passwords, tokens, and user data with its join
/// secrets.
const SEALED: [&str; 5] = [
    "/secrets",
    "bootstrap.cluster.x-k8s.io/kubeadmconfigs",
    "tinkerbell.org/hardware",
    "tinkerbell.org/templates",
    "tinkerbell.org/workflows",
];

/// The store of `STATE/objects.redb`, sealed with the key in `STATE/sealing.key`.
fn open_store(state: &Path) -> anyhow::Result<Store> {
    let key = SealingKey::load_or_create(&state.join("sealing.key"))
        .context("cannot read the key that seals secrets")?;
    let options = store::Options {
        sealing_key: Some(key),
        sealed: SEALED.map(str::to_owned).to_vec(),
        ..store::Options::default()
    };
    Store::open(&state.join("objects.redb"), options).context("cannot open the store")
}

/// Run the box until SIGTERM or SIGINT, or until a service fails.
///
/// # Errors
/// What could not be started, or which service ended and why. A service that ends takes the process
/// with it: whoever started it starts it again, from a state that is known to be good.
pub async fn run(state: &Path, config: Config) -> anyhow::Result<()> {
    std::fs::create_dir_all(state)
        .with_context(|| format!("cannot make the state folder {}", state.display()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = open_store(state)?;
    let registry = builtin::registry().context("two kinds claim one name")?;
    let engine = Engine::new(store, registry, Arc::clone(&clock));
    engine.ensure_permanent().await.context("cannot make the first objects")?;
    roles::ensure(&engine).await.context("cannot make the first roles")?;
    let tokens = BootTokens::ensure(state)?;

    let mut wiring = Wiring::new(config, clock, engine, tokens);
    let pki = Pki::ensure(state, &wiring.config.api_names(), wiring.clock.now())
        .context("cannot prepare the API's certificates")?;
    wiring.collector(&pki);
    wiring.api(state, &pki).await?;
    wiring.controllers().await?;
    wiring.dhcp();
    wiring.boot_files().await?;
    wiring.agents().await?;
    tracing::info!(state = %state.display(), "tinboxd is ready");
    wiring.watch().await
}

impl Wiring {
    fn new(config: Config, clock: Arc<dyn Clock>, engine: Engine, tokens: BootTokens) -> Self {
        let config = Arc::new(config);
        let shutdown = CancellationToken::new();
        let mut services = JoinSet::new();
        let index = Index::default();
        let (recorder, writer) = recorder();
        let writing = writer.run(engine.clone(), shutdown.clone());
        services.spawn(async move {
            ("events", {
                writing.await;
                Ok(())
            })
        });
        let objects: Arc<dyn Objects> =
            Arc::new(EngineObjects { engine: engine.clone(), recorder: recorder.clone() });
        let observers = Arc::new(Observers::new(index.clone(), recorder, Arc::clone(&clock)));
        let views = Arc::new(HardwareViews {
            index: index.clone(),
            tokens: tokens.clone(),
            config: Arc::clone(&config),
        });
        let agents = Arc::new(AgentService::new(
            Arc::clone(&objects),
            index.clone(),
            Arc::clone(&observers),
            tokens,
            Arc::clone(&clock),
            config.agents.permissive,
        ));
        Self { config, clock, engine, objects, index, observers, views, agents, services, shutdown }
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

    fn own(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.config.network.address, port))
    }

    async fn api(&mut self, state: &Path, pki: &Pki) -> anyhow::Result<()> {
        let access = AdminAccess::ensure(state, pki, &self.config.api_url())
            .context("cannot make the administrator's kubeconfig")?;
        if access.created {
            let file = access.kubeconfig.display();
            tracing::info!(%file, "the administrator's kubeconfig was made");
        }
        let gate = Gate::open(state, &self.config.api_url())
            .context("cannot read the API's tokens and keys")?;
        let router =
            apiserver::router(self.engine.clone(), gate, live::router(Arc::clone(&self.agents)));
        let listener = self.listen("the API", self.config.api.listen).await?;
        let tls = pki.server_config().context("cannot set up TLS for the API")?;
        let (gathering, shutdown) = (self.engine.clone(), self.shutdown.clone());
        self.spawn("roles", async move {
            shutdown.run_until_cancelled(roles::keep_gathered(gathering)).await;
            Ok(())
        });
        let shutdown = self.shutdown.clone();
        self.spawn("api", async move {
            apiserver::serve(listener, tls, router, shutdown.cancelled_owned()).await?;
            Ok(())
        });
        let cleanup = apiserver::crds::cleanup::run(self.engine.clone());
        let cleanup = self.shutdown.clone().run_until_cancelled_owned(cleanup);
        self.spawn("kinds", async move {
            cleanup.await;
            Ok(())
        });
        Ok(())
    }

    /// Garbage, namespaces that begin and end, and old records.
    fn collector(&mut self, pki: &Pki) {
        let furniture = builtin::furniture(pki.ca_pem());
        let collector = Collector::new(self.engine.clone(), furniture);
        let running = collector.run(self.shutdown.clone().cancelled_owned());
        self.spawn("collector", async move {
            running.await;
            Ok(())
        });
    }

    fn controller(&mut self, name: &'static str, reconciler: impl Reconciler) -> Signals {
        let controller = Controller::new(Arc::new(reconciler));
        let signals = controller.signals();
        let running = controller.run(self.shutdown.clone());
        self.spawn(name, async move {
            running.await;
            Ok(())
        });
        signals
    }

    /// Returns once everything stored is in the index: a machine that asks earlier would be told
    /// that there is nothing for it.
    async fn controllers(&mut self) -> anyhow::Result<()> {
        let (objects, clock) = (Arc::clone(&self.objects), Arc::clone(&self.clock));
        let drivers = Arc::new(BmcDrivers);
        let patience = Patience {
            agent: SignedDuration::from_secs(self.config.agents.silence_secs.into()),
            boot: SignedDuration::from_secs(self.config.agents.boot_secs.into()),
        };
        let workflow = WorkflowReconciler {
            objects: Arc::clone(&objects),
            agents: Arc::clone(&self.agents) as _,
            clock: Arc::clone(&clock),
            patience,
        };
        let job = JobReconciler { objects: Arc::clone(&objects), clock: Arc::clone(&clock) };
        let task = TaskReconciler {
            objects: Arc::clone(&objects),
            drivers: drivers.clone(),
            clock: Arc::clone(&clock),
        };
        let machine = MachineReconciler { objects, drivers, clock, poll: self.config.bmc.poll() };
        let wakes = Wakes {
            workflow: self.controller("workflow controller", workflow),
            job: self.controller("job controller", job),
            task: self.controller("task controller", task),
            machine: self.controller("machine controller", machine),
        };
        let pump = Pump {
            engine: self.engine.clone(),
            objects: Arc::clone(&self.objects),
            index: self.index.clone(),
            wakes,
            observers: Arc::clone(&self.observers),
        };
        let mut lists = Vec::new();
        for resource in KINDS {
            let (listed, list) = oneshot::channel();
            lists.push((resource.kind, list));
            let running = pump.clone().run(resource, listed, self.shutdown.clone());
            self.spawn("watch", async move {
                running.await;
                Ok(())
            });
        }
        for (kind, list) in lists {
            tokio::time::timeout(LIST_WAIT, list)
                .await
                .with_context(|| format!("cannot list every {kind} in time"))?
                .with_context(|| format!("cannot list every {kind}"))?;
        }
        Ok(())
    }

    fn dhcp(&mut self) {
        let network = &self.config.network;
        if !network.dhcp {
            tracing::info!("network.dhcp is not true: no DHCP message is answered");
            return;
        }
        let mut config = dhcp::Config::new(network.interface.clone(), network.address);
        config.router_advertisements = network.router_advertisements;
        let directory = Arc::clone(&self.views);
        let observer = Arc::clone(&self.observers);
        let shutdown = self.shutdown.clone();
        self.spawn("dhcp", async move {
            dhcp::run(config, directory, observer, shutdown).await.context("cannot serve DHCP")
        });
    }

    async fn boot_files(&mut self) -> anyhow::Result<()> {
        let script_base = format!("http://{}:{HTTP_PORT}", self.config.network.address);
        let services = netboot::Services {
            files: netboot::Files::new(&self.config.boot.artifacts),
            plans: Arc::clone(&self.views) as _,
            observer: Arc::clone(&self.observers) as _,
        };
        let interface = Some(self.config.network.interface.as_str());
        let socket = netboot::tftp::bind(self.own(TFTP_PORT), interface)?;
        let tftp = netboot::tftp::TftpConfig { script_base: script_base.clone() };
        let (files, shutdown) = (services.clone(), self.shutdown.clone());
        self.spawn("tftp", async move {
            netboot::tftp::serve(socket, tftp, files, shutdown).await.context("cannot serve TFTP")
        });

        let version = env!("CARGO_PKG_VERSION").to_owned();
        let http = netboot::http::HttpConfig { script_base, version };
        let metadata =
            metadata::router(Arc::clone(&self.views) as _, Arc::clone(&self.observers) as _);
        let boot = netboot::http::router(http, services).merge(metadata.clone());
        for (name, port, router) in
            [("boot http", HTTP_PORT, boot), ("metadata", METADATA_PORT, metadata)]
        {
            let listener = self.listen(name, self.own(port)).await?;
            let shutdown = self.shutdown.clone();
            self.spawn(name, async move {
                netboot::http::serve(listener, router, shutdown).await;
                Ok(())
            });
        }
        Ok(())
    }

    async fn agents(&mut self) -> anyhow::Result<()> {
        let listener = self.listen("agents", self.own(AGENT_PORT)).await?;
        let routes = workflow_rpc::server::routes(Arc::clone(&self.agents) as _);
        let shutdown = self.shutdown.clone();
        // The same edge as boot HTTP: it asks idle connections for a sign of life, so that machines
        // that were switched off do not pile up.
        self.spawn("agents", async move {
            netboot::http::serve(listener, routes, shutdown).await;
            Ok(())
        });
        Ok(())
    }

    async fn watch(mut self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot take signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot take signals")?;
        let ended = tokio::select! {
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            ended = self.services.join_next() => ended,
        };
        self.shutdown.cancel();
        match ended {
            None => {
                tracing::info!("asked to stop");
                let rest = async { while self.services.join_next().await.is_some() {} };
                if tokio::time::timeout(STOP_GRACE, rest).await.is_err() {
                    tracing::warn!("some services did not stop in time");
                }
                Ok(())
            }
            Some(Ok((name, Ok(())))) => anyhow::bail!("service {name} ended by itself"),
            Some(Ok((name, Err(error)))) => Err(error.context(format!("service {name} failed"))),
            Some(Err(error)) => Err(error).context("a service broke off"),
        }
    }
}
