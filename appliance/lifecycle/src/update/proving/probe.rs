//! Checks of the running system, which read the host.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agent_rpc::Pin;
use anyhow::Context as _;
use config::Config;
use platform::net::InterfaceState;
use rustls::pki_types::ServerName;
use store::Store;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Timeout of a request to the box's own API.
const ANSWER: Duration = Duration::from_secs(5);
/// File from the build of the system. The modification time of this file counts as the build time.
const BUILT: &str = "/etc/os-release";
/// HTTP request that checks if the API responds. Any HTTP response is accepted.
const REQUEST: &[u8] = b"GET /version HTTP/1.1\r\nHost: tinbox\r\nConnection: close\r\n\r\n";

/// Checker of the running system.
pub struct Probe {
    config: Arc<Config>,
    tls: TlsConnector,
    address: SocketAddr,
    store: Store,
}

impl Probe {
    /// Creates a checker. `address` is the box's own address of the API; `pin` is the box's own
    /// pin. The certificate's validity period is not checked, because the clock may be wrong.
    ///
    /// # Errors
    /// TLS 1.3 is not available.
    pub fn new(
        config: Arc<Config>,
        pin: Pin,
        address: SocketAddr,
        store: Store,
    ) -> anyhow::Result<Self> {
        let mut tls = pin.client_config().context("cannot set up TLS towards the box itself")?;
        // HTTP/1.1 is the protocol of the API for a client that offers no protocol in ALPN.
        tls.alpn_protocols.clear();
        Ok(Self { config, tls: TlsConnector::from(Arc::new(tls)), address, store })
    }

    /// Checks that the store accepts a write. The write is on disk when the function returns.
    ///
    /// # Errors
    /// The store accepts no writes.
    pub async fn stores(&self) -> Result<(), store::Error> {
        self.store.touch().await
    }

    /// Returns the failed checks as phrases: API, addresses of the networks, clock. The store is
    /// not checked, because it was opened before the services started.
    pub async fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if let Err(error) = self.api().await {
            lacks.push(format!("the API does not respond: {error:#}"));
        }
        match platform::net::look().await {
            Ok(seen) => {
                let networks = self.config.networks.iter();
                lacks.extend(missing(networks.map(|it| (&*it.interface, it.address)), &seen));
            }
            Err(error) => lacks.push(stdx::chain(&error)),
        }
        let built = fs::metadata(Path::new(BUILT)).and_then(|data| data.modified()).ok();
        lacks.extend(early(SystemTime::now(), built));
        lacks
    }

    /// Sends a request to the API.
    ///
    /// # Errors
    /// The API does not respond with HTTP within 5 s.
    pub async fn api(&self) -> anyhow::Result<()> {
        let asking = async {
            let stream = TcpStream::connect(self.address).await?;
            let name = ServerName::try_from("tinbox")?;
            let mut stream = self.tls.connect(name, stream).await?;
            stream.write_all(REQUEST).await?;
            let mut answer = [0; 9];
            stream.read_exact(&mut answer).await?;
            anyhow::ensure!(answer == *b"HTTP/1.1 ", "the response is not HTTP");
            Ok(())
        };
        timeout(ANSWER, asking).await.context("no response in time")?
    }
}

/// Returns a phrase for each interface that lacks its address. A missing NIC is skipped, because a
/// person may have removed it. If all NICs are missing, all are reported: a driver may be missing.
fn missing<'a>(
    networks: impl Iterator<Item = (&'a str, Ipv4Addr)>,
    seen: &[InterfaceState],
) -> Vec<String> {
    let (there, gone): (Vec<_>, Vec<_>) =
        networks.partition(|(name, _)| seen.iter().any(|it| it.link.name == *name));
    let judged = if there.is_empty() { gone } else { there };
    judged.iter().filter_map(|(name, own)| unbound(name, IpAddr::V4(*own), seen)).collect()
}

/// Returns a phrase if `interface` is missing or does not have `address`.
fn unbound(interface: &str, address: IpAddr, seen: &[InterfaceState]) -> Option<String> {
    let there = seen.iter().find(|seen| seen.link.name == interface);
    match there {
        None => Some(format!("{interface} is missing")),
        Some(seen) if seen.addresses.iter().all(|(known, _)| *known != address) => {
            Some(format!("{interface} does not have its address {address}"))
        }
        Some(_) => None,
    }
}

/// Returns a phrase if the clock is earlier than the build time of the system.
fn early(now: SystemTime, built: Option<SystemTime>) -> Option<String> {
    (built? > now).then(|| "the clock is earlier than the build of the system".to_owned())
}

#[cfg(test)]
mod tests;
