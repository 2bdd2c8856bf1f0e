//! The proofs, taken from the host: what of them is missing.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use platform::net::Seen;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use workflow_rpc::Pin;

use crate::config::Config;

/// How long the API may take to answer the box itself.
const ANSWER: Duration = Duration::from_secs(5);
/// What the system's making wrote; it is as old as the sources.
const BUILT: &str = "/etc/os-release";
/// Any answer is one: what is asked for is a sign of life, not an object.
const REQUEST: &[u8] = b"GET /version HTTP/1.1\r\nHost: tinbox\r\nConnection: close\r\n\r\n";

/// Looks at the running system.
pub struct Probe {
    config: Arc<Config>,
    tls: TlsConnector,
    address: SocketAddr,
}

impl Probe {
    /// `address` is where the box alone asks the API, and `pin` is of the box's own key. The dates
    /// of its certificate are not judged: the clock that they would be judged by is set by others.
    ///
    /// # Errors
    /// There is no TLS 1.3.
    pub fn new(config: Arc<Config>, pin: Pin, address: SocketAddr) -> anyhow::Result<Self> {
        let mut tls = pin.client_config().context("cannot set up TLS towards the box itself")?;
        // HTTP/1.1 is what the API speaks to a client that names no protocol.
        tls.alpn_protocols.clear();
        Ok(Self { config, tls: TlsConnector::from(Arc::new(tls)), address })
    }

    /// What does not work, as phrases. The store was opened before anybody could ask.
    pub async fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if let Err(error) = self.api().await {
            lacks.push(format!("the API does not answer: {error:#}"));
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

    /// Asks the API for a sign of life.
    ///
    /// # Errors
    /// There is none in time.
    pub async fn api(&self) -> anyhow::Result<()> {
        let asking = async {
            let stream = TcpStream::connect(self.address).await?;
            let name = ServerName::try_from("tinbox")?;
            let mut stream = self.tls.connect(name, stream).await?;
            stream.write_all(REQUEST).await?;
            let mut answer = [0; 9];
            stream.read_exact(&mut answer).await?;
            anyhow::ensure!(answer == *b"HTTP/1.1 ", "it does not speak HTTP");
            Ok(())
        };
        timeout(ANSWER, asking).await.context("it takes too long")?
    }
}

/// What is wrong with the addresses of networks. A card that is not there may have been taken out;
/// when none is there, the system does not know them.
fn missing<'a>(networks: impl Iterator<Item = (&'a str, Ipv4Addr)>, seen: &[Seen]) -> Vec<String> {
    let (there, gone): (Vec<_>, Vec<_>) =
        networks.partition(|(name, _)| seen.iter().any(|it| it.link.name == *name));
    let judged = if there.is_empty() { gone } else { there };
    judged.iter().filter_map(|(name, own)| unbound(name, IpAddr::V4(*own), seen)).collect()
}

/// Says so when `interface` has not its address.
fn unbound(interface: &str, address: IpAddr, seen: &[Seen]) -> Option<String> {
    let there = seen.iter().find(|seen| seen.link.name == interface);
    match there {
        None => Some(format!("{interface} is not there")),
        Some(seen) if seen.addresses.iter().all(|(known, _)| *known != address) => {
            Some(format!("{interface} has not its address {address}"))
        }
        Some(_) => None,
    }
}

/// Says so when the clock is behind the system's making.
fn early(now: SystemTime, built: Option<SystemTime>) -> Option<String> {
    (built? > now).then(|| "the clock is behind the system's making".to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use apiserver::Pki;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpSocket};
    use tokio_rustls::TlsAcceptor;
    use workflow_rpc::Pin;

    use super::{Probe, early, missing, unbound};
    use crate::config::Config;

    fn pki(folder: &std::path::Path) -> Pki {
        Pki::ensure(folder, &["tinbox".to_owned()], jiff::Timestamp::now()).unwrap()
    }

    #[tokio::test]
    async fn only_an_answer_under_the_own_key_counts() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [own, other] = [pki(folders[0].path()), pki(folders[1].path())];
        // By a clock that is years wrong the certificate is not valid.
        let folder = tempfile::tempdir().unwrap();
        let past = jiff::Timestamp::from_second(1_000_000_000).unwrap();
        let old = Pki::ensure(folder.path(), &["tinbox".to_owned()], past).unwrap();
        let pin = |pki: &Pki| Pin::of(&pki.server_certificate().unwrap()).unwrap();
        for (pki, answer, good) in [
            (&own, "HTTP/1.1 401 ", true),
            (&old, "HTTP/1.1 401 ", true),
            (&own, "SSH-2.0-x", false),
            (&other, "HTTP/1.1 ", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let acceptor = TlsAcceptor::from(pki.server_config().unwrap());
            let serving = tokio::spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                // A client that does not trust the server goes away.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _ = stream.read(&mut [0; 256]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
            let known = if std::ptr::eq(pki, &old) { &old } else { &own };
            let probe = Probe::new(Arc::new(Config::untold()), pin(known), address).unwrap();
            let asked = probe.api().await;
            assert_eq!(asked.is_ok(), good, "{answer}: {asked:?}");
            serving.await.unwrap();
        }
        // Bound, and nothing listens: no other program gets the port either.
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = closed.local_addr().unwrap();
        let probe = Probe::new(Arc::new(Config::untold()), pin(&own), address).unwrap();
        assert!(probe.api().await.is_err());
    }

    #[test]
    fn a_clock_behind_the_system_is_a_lack() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        assert!(early(at(5), Some(at(6))).is_some());
        assert_eq!(early(at(6), Some(at(6))), None);
        assert_eq!(early(at(0), None), None);
    }

    #[test]
    fn a_card_that_is_not_there_is_a_lack() {
        let gone = [("eth1", [10, 0, 0, 1].into())];
        assert_eq!(missing(gone.into_iter(), &[]), ["eth1 is not there"]);
        let lack = unbound("eth1", [10, 0, 0, 1].into(), &[]);
        assert_eq!(lack.as_deref(), Some("eth1 is not there"));
    }
}
