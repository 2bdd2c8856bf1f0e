//! Proofs that the running system works, read from the host.

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

/// Maximum time of a request to the box's own API.
const ANSWER: Duration = Duration::from_secs(5);
/// File that the build of the system wrote; its time is the time of the sources.
const BUILT: &str = "/etc/os-release";
/// Any HTTP response is accepted: the request only checks that the API responds.
const REQUEST: &[u8] = b"GET /version HTTP/1.1\r\nHost: tinbox\r\nConnection: close\r\n\r\n";

/// Checks the running system.
pub struct Probe {
    config: Arc<Config>,
    tls: TlsConnector,
    address: SocketAddr,
    store: Store,
}

impl Probe {
    /// Makes a probe. `address` is the box's own address of the API, and `pin` is of the box's own
    /// key. The certificate's validity period is not checked: the clock may be wrong.
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

    /// Checks that the store takes writes. They are on the disk when this returns.
    ///
    /// # Errors
    /// The store takes no writes.
    pub async fn stores(&self) -> Result<(), store::Error> {
        self.store.touch().await
    }

    /// Lists the missing proofs, as phrases: API, addresses of the networks, clock. The store is
    /// not checked: it was opened before the services started.
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
    /// The API does not respond with HTTP in time.
    pub async fn api(&self) -> anyhow::Result<()> {
        let asking = async {
            let stream = TcpStream::connect(self.address).await?;
            let name = ServerName::try_from("tinbox")?;
            let mut stream = self.tls.connect(name, stream).await?;
            stream.write_all(REQUEST).await?;
            let mut answer = [0; 9];
            stream.read_exact(&mut answer).await?;
            anyhow::ensure!(answer == *b"HTTP/1.1 ", "its response is not HTTP");
            Ok(())
        };
        timeout(ANSWER, asking).await.context("it takes too long")?
    }
}

/// Lists the networks whose interface lacks its address. A missing NIC may have been removed; when
/// all are missing, the system may lack their drivers, so all are listed.
fn missing<'a>(
    networks: impl Iterator<Item = (&'a str, Ipv4Addr)>,
    seen: &[InterfaceState],
) -> Vec<String> {
    let (there, gone): (Vec<_>, Vec<_>) =
        networks.partition(|(name, _)| seen.iter().any(|it| it.link.name == *name));
    let judged = if there.is_empty() { gone } else { there };
    judged.iter().filter_map(|(name, own)| unbound(name, IpAddr::V4(*own), seen)).collect()
}

/// Returns a phrase if `interface` is missing or lacks its address.
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

/// Returns a phrase if the clock is earlier than the build of the system.
fn early(now: SystemTime, built: Option<SystemTime>) -> Option<String> {
    (built? > now).then(|| "the clock is earlier than the build of the system".to_owned())
}

#[cfg(test)]
mod tests;
