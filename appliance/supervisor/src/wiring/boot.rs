//! Wiring of boot files, metadata and syslog for machines, on every configured network.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::network::NetworkPlan;
use apiserver::Pki;
use axum::Router;
use config::HTTP_PORT;
use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use netboot::http::{Downloads, HttpConfig, HttpService};
use netboot::{Files, Services, tftp};
use provisioning::images::Images;
use provisioning::index::Index;
use provisioning::networks::nic;
use stdx::Backoff;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Wiring;

/// TCP port of boot files over TLS.
const HTTPS_PORT: u16 = 7443;
/// Port that serves only the agent OS's files, at the paths of Tinkerbell's Helm chart.
const FILES_PORT: u16 = 7173;
/// Port of metadata, as in CAPT's default template.
pub(super) const METADATA_PORT: u16 = 50061;
/// UDP port of TFTP (RFC 1350).
const TFTP_PORT: u16 = 69;
/// UDP port of syslog (RFC 5426).
const SYSLOG_PORT: u16 = 514;
/// Maximum wait until an address can be bound, and interval of the attempts.
const ADDRESS_WAIT: Duration = Duration::from_secs(5);
const ADDRESS_RETRY: Duration = Duration::from_millis(200);
/// First and longest wait before a retry of ports that could not be opened.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

impl Wiring {
    /// Serves boot files, metadata and syslog on every network, as soon as the box has its address
    /// there.
    pub(super) async fn boot_files(&mut self, pki: &Pki) -> anyhow::Result<()> {
        self.assemble_media();
        let services = Services {
            files: Files::new(&self.config.boot.artifacts),
            plans: Arc::clone(&self.views) as _,
            observer: Arc::clone(&self.observers) as _,
        };
        let metadata = metadata::router(
            self.config.metadata.clone(),
            Arc::clone(&self.views) as _,
            Arc::clone(&self.observers) as _,
            Arc::clone(&self.power_hooks),
        );
        let boot = Arc::new(BootFiles {
            services,
            metadata,
            images: self.images.clone(),
            index: self.views.index.clone(),
            tls: pki.server_config().context("cannot set up TLS for boot files")?,
            shutdown: self.shutdown.clone(),
        });
        for network in self.config.networks.clone() {
            let interface = network.interface.clone();
            let (files, own) = (Arc::clone(&boot), IpAddr::V4(network.address));
            let open = move || {
                let (files, interface) = (Arc::clone(&files), interface.clone());
                async move { files.open(&interface, own).await }
            };
            self.serve_when_open("boot files", &network.interface, open).await;
            if network.ipv6 {
                let (files, interface) = (Arc::clone(&boot), network.interface.clone());
                let open = move || {
                    let (files, interface) = (Arc::clone(&files), interface.clone());
                    async move {
                        let own = IpAddr::V6(nic::ipv6(&interface)?);
                        files.open(&interface, own).await
                    }
                };
                self.serve_when_open("boot files over IPv6", &network.interface, open).await;
            }
            self.syslog(&network).await;
        }
        Ok(())
    }

    /// Serves the result of `open` as soon as `open` succeeds. No other service waits, and the
    /// status shows the error meanwhile.
    pub(super) async fn serve_when_open<Opening>(
        &mut self,
        service: &'static str,
        interface: &str,
        open: impl Fn() -> Opening + Send + Sync + 'static,
    ) where
        Opening: Future<Output = anyhow::Result<ServiceFuture>> + Send,
    {
        let mut opened = open().await;
        let (board, shutdown) = (self.board.clone(), self.shutdown.clone());
        let interface = interface.to_owned();
        let keeping = async move {
            let mut waits = Backoff::new(RETRY.0, RETRY.1);
            loop {
                match opened {
                    Ok(serving) => {
                        board.arrived(&interface, service);
                        return serving.await;
                    }
                    Err(error) => board.wait(&interface, service, format!("{error:#}")),
                }
                let again = async {
                    tokio::time::sleep(waits.next_wait()).await;
                    open().await
                };
                match shutdown.run_until_cancelled(again).await {
                    Some(again) => opened = again,
                    None => return Ok(()),
                }
            }
        };
        self.spawn(service, keeping);
    }

    /// Creates the unified kernel image and the ISO of the agent OS if they are missing or older
    /// than their sources. No service waits for the files: an earlier request gets 404.
    fn assemble_media(&self) {
        let files = Files::new(&self.config.boot.artifacts);
        let (kernel, initramfs) =
            (self.config.boot.kernel.clone(), self.config.boot.initramfs.clone());
        tokio::task::spawn_blocking(move || {
            match netboot::assemble::refresh(&files, &kernel, &initramfs) {
                Ok(true) => tracing::info!("created the agent OS's bootable media"),
                Ok(false) => {}
                Err(error) => {
                    let error = stdx::chain(&error);
                    tracing::warn!(%error, "cannot create bootable media of the agent OS");
                }
            }
        });
    }

    async fn syslog(&mut self, network: &NetworkPlan) {
        let at = SocketAddr::new(network.address.into(), SYSLOG_PORT);
        let (views, log) = (Arc::clone(&self.views), Arc::clone(&self.syslog));
        let (interface, shutdown) = (network.interface.clone(), self.shutdown.clone());
        let open = move || {
            let bound = syslog::bind(at, Some(&interface));
            let (names, log) = (Arc::clone(&views) as _, Arc::clone(&log));
            let shutdown = shutdown.clone();
            async move {
                let served = syslog::serve(bound?, names, log, shutdown);
                let served = async { served.await.context("cannot receive syslog") };
                Ok(Box::pin(served) as ServiceFuture)
            }
        };
        self.serve_when_open("syslog", &network.interface, open).await;
    }
}

/// Future of all services at one address. The future ends when the box stops.
pub(super) type ServiceFuture = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// Parts that the boot services share at all addresses of the box.
struct BootFiles {
    services: Services,
    metadata: Router,
    images: Images,
    index: Index,
    tls: Arc<rustls::ServerConfig>,
    shutdown: CancellationToken,
}

impl BootFiles {
    /// Opens all ports of one address, and returns the future that serves them.
    async fn open(&self, interface: &str, address: IpAddr) -> anyhow::Result<ServiceFuture> {
        let script_base = format!("http://{}", SocketAddr::new(address, HTTP_PORT));
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let http = HttpConfig { script_base: script_base.clone(), version };
        let router = netboot::http::router(http, self.services.clone())
            .merge(self.metadata.clone())
            .merge(self.images.routes(&self.index, &self.services.observer));
        let downloads =
            Downloads::boot(self.services.clone()).with_cache(self.images.access(&self.index));
        let boot = HttpService::with_downloads(router, downloads).for_unknown_clients();
        let flat = HttpService::with_downloads(
            netboot::http::files_router(self.services.clone()),
            Downloads::flat(self.services.clone()),
        );
        let metadata = HttpService::from(self.metadata.clone()).for_unknown_clients();
        let mut serving: Vec<ServiceFuture> = Vec::new();
        for (name, port, service) in [
            ("boot http", HTTP_PORT, boot.clone()),
            ("agent files", FILES_PORT, flat),
            ("metadata", METADATA_PORT, metadata),
        ] {
            let listener = listen_at(name, SocketAddr::new(address, port)).await?;
            let served = netboot::http::serve(listener, service, self.shutdown.clone());
            serving.push(Box::pin(served.map(Ok)));
        }
        let listener = listen_at("boot https", SocketAddr::new(address, HTTPS_PORT)).await?;
        let (tls, shutdown) = (Arc::clone(&self.tls), self.shutdown.clone());
        let served = netboot::http::serve_tls(listener, tls, boot, shutdown);
        serving.push(Box::pin(served.map(Ok)));
        // TFTP comes last: the listeners above have waited for the address.
        let socket = tftp::bind(SocketAddr::new(address, TFTP_PORT), Some(interface))?;
        let config = tftp::TftpConfig { script_base };
        let served = tftp::serve(socket, config, self.services.clone(), self.shutdown.clone());
        serving.push(Box::pin(async { served.await.context("cannot serve TFTP") }));
        Ok(Box::pin(try_join_all(serving).map(|served| served.map(drop))))
    }
}

/// Listens at an address. Retries for up to 5 s if the kernel has not assigned the address yet.
pub(super) async fn listen_at(what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let deadline = Instant::now() + ADDRESS_WAIT;
    let bound = loop {
        match TcpListener::bind(address).await {
            Err(error) if is_not_yet_ours(&error) && Instant::now() < deadline => {
                tokio::time::sleep(ADDRESS_RETRY).await;
            }
            bound => break bound,
        }
    };
    bound.with_context(|| format!("cannot listen on {address} for {what}"))
}

fn is_not_yet_ours(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
}
