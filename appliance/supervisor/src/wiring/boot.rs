//! What machines boot from and are told about themselves, on every network of the file.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::network::NetworkPlan;
use apiserver::Pki;
use netboot::http::{Downloads, Face, HttpConfig};
use netboot::{Files, Services, syslog, tftp};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::Wiring;
use crate::config::HTTP_PORT;
use crate::networks::nic;

/// The same over TLS.
const HTTPS_PORT: u16 = 7443;
/// The agent OS's files alone, where Tinkerbell's chart has them.
const FILES_PORT: u16 = 7173;
/// Metadata where CAPT's default template looks for it.
const METADATA_PORT: u16 = 50061;
/// TFTP.
const TFTP_PORT: u16 = 69;
/// Syslog.
const SYSLOG_PORT: u16 = 514;
/// How long an address may take to be the box's own: the kernel checks a new IPv6 address for a
/// second.
const ADDRESS_WAIT: Duration = Duration::from_secs(5);
const ADDRESS_RETRY: Duration = Duration::from_millis(200);

impl Wiring {
    /// Serves boot files, metadata and syslog on every network.
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
        );
        let tls = pki.server_config().context("cannot set up TLS for boot files")?;
        for network in self.config.networks.clone() {
            for address in own_addresses(&network)? {
                let script_base = format!("http://{}", SocketAddr::new(address, HTTP_PORT));
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let http = HttpConfig { script_base: script_base.clone(), version };
                let router = netboot::http::router(http, services.clone())
                    .merge(metadata.clone())
                    .merge(self.images.routes(&services.observer));
                let downloads =
                    Downloads::boot(services.clone()).with_cache(self.images.cache().cloned());
                let boot = Face::with_downloads(router, downloads).for_strangers();
                let flat = Face::with_downloads(
                    netboot::http::files_router(services.clone()),
                    Downloads::flat(services.clone()),
                );
                for (name, port, face) in [
                    ("boot http", HTTP_PORT, boot.clone()),
                    ("agent files", FILES_PORT, flat),
                    ("metadata", METADATA_PORT, Face::from(metadata.clone()).for_strangers()),
                ] {
                    let listener = self.listen_at(name, SocketAddr::new(address, port)).await?;
                    let shutdown = self.shutdown.clone();
                    self.spawn(name, async move {
                        netboot::http::serve(listener, face, shutdown).await;
                        Ok(())
                    });
                }
                let at = SocketAddr::new(address, HTTPS_PORT);
                let listener = self.listen_at("boot https", at).await?;
                let (tls, shutdown) = (Arc::clone(&tls), self.shutdown.clone());
                self.spawn("boot https", async move {
                    netboot::http::serve_tls(listener, tls, boot, shutdown).await;
                    Ok(())
                });
                // After those that wait for the address.
                self.tftp(&network, address, &script_base, &services)?;
            }
            self.syslog(&network)?;
        }
        Ok(())
    }

    /// Makes the unified kernel image and the ISO of the agent OS, where they are missing or older
    /// than what they are made of. Nothing waits for it: who asks earlier gets 404.
    fn assemble_media(&self) {
        let files = Files::new(&self.config.boot.artifacts);
        let (kernel, initramfs) =
            (self.config.boot.kernel.clone(), self.config.boot.initramfs.clone());
        tokio::task::spawn_blocking(move || {
            match netboot::assemble::refresh(&files, &kernel, &initramfs) {
                Ok(true) => tracing::info!("made the agent OS's bootable media"),
                Ok(false) => {}
                Err(error) => {
                    let error = stdx::chain(&error);
                    tracing::warn!(%error, "there are no bootable media of the agent OS");
                }
            }
        });
    }

    fn tftp(
        &mut self,
        network: &NetworkPlan,
        address: IpAddr,
        script_base: &str,
        services: &Services,
    ) -> anyhow::Result<()> {
        let at = SocketAddr::new(address, TFTP_PORT);
        let socket = tftp::bind(at, Some(&network.interface))?;
        let config = tftp::TftpConfig { script_base: script_base.to_owned() };
        let (services, shutdown) = (services.clone(), self.shutdown.clone());
        self.spawn("tftp", async move {
            tftp::serve(socket, config, services, shutdown).await.context("cannot serve TFTP")
        });
        Ok(())
    }

    fn syslog(&mut self, network: &NetworkPlan) -> anyhow::Result<()> {
        let at = SocketAddr::new(network.address.into(), SYSLOG_PORT);
        let socket = syslog::bind(at, Some(&network.interface))?;
        let (names, log) = (Arc::clone(&self.views) as _, Arc::clone(&self.syslog));
        let shutdown = self.shutdown.clone();
        self.spawn("syslog", async move {
            syslog::serve(socket, names, log, shutdown).await.context("cannot receive syslog")
        });
        Ok(())
    }

    async fn listen_at(&self, what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
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
}

/// The box's addresses on a network: the IPv4 one, and with DHCPv6 the IPv6 one.
fn own_addresses(network: &NetworkPlan) -> anyhow::Result<Vec<IpAddr>> {
    let mut addresses = vec![IpAddr::V4(network.address)];
    if network.ipv6 {
        addresses.push(IpAddr::V6(nic::ipv6(&network.interface)?));
    }
    Ok(addresses)
}

fn is_not_yet_ours(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
}
