//! HTTP connector to other servers, limited to allowed addresses.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::net::TcpStream;

use crate::RefusedAddress;

/// CA certificates of the operating system. If the file is missing, as on the box's own firmware,
/// the CA certificates of Mozilla are used.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Maximum time to connect to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connector for `http` and `https` URLs.
pub type Connector = HttpsConnector<CheckedTcp>;
/// Function that checks if a connection to an address is allowed.
pub type Check = Arc<dyn Fn(IpAddr) -> Result<(), RefusedAddress> + Send + Sync>;

/// Reason why a connector cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// The file with CA certificates cannot be read.
    #[error("cannot read {}", .0.display())]
    Unread(PathBuf, #[source] rustls_pki_types::pem::Error),
    /// The file with CA certificates has none that is valid.
    #[error("{} has no certificate", .0.display())]
    NoCertificate(PathBuf),
    /// The TLS library refuses its settings.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// TCP connector that checks each IP address, also after a DNS lookup. The check covers every
/// server, including targets of redirects and servers that a registry names.
#[derive(Clone)]
pub struct CheckedTcp {
    tcp: HttpConnector<Names>,
    check: Check,
}

impl tower::Service<Uri> for CheckedTcp {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Answer<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // The connector does not look up a host that is already an address.
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse::<IpAddr>()
            && let Err(refused) = (self.check)(address)
        {
            return Box::pin(std::future::ready(Err(refused.into())));
        }
        let connecting = self.tcp.call(uri);
        Box::pin(async move { Ok(connecting.await?) })
    }
}

/// DNS resolver that returns only allowed addresses. It uses [`resolver`], so that a slow name
/// server does not block other tasks.
#[derive(Clone)]
pub struct Names(Check);

impl tower::Service<Name> for Names {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Answer<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let check = Arc::clone(&self.0);
        Box::pin(async move {
            let found = resolver::system().lookup(name.as_str(), 0).await?;
            Ok(allowed(found, check.as_ref())?.into_iter())
        })
    }
}

/// Returns the allowed addresses of `found`, or the first refusal if no address is allowed.
fn allowed(
    mut found: Vec<SocketAddr>,
    check: impl Fn(IpAddr) -> Result<(), RefusedAddress>,
) -> Result<Vec<SocketAddr>, RefusedAddress> {
    let mut refusal = None;
    found.retain(|address| match check(address.ip()) {
        Ok(()) => true,
        Err(refused) => {
            refusal.get_or_insert(refused);
            false
        }
    });
    match refusal {
        Some(refused) if found.is_empty() => Err(refused),
        _ => Ok(found),
    }
}

/// Creates a connector for `http` and `https` to the addresses that `check` allows. TLS 1.2 is
/// enabled, because many mirrors and registries do not support TLS 1.3. The TLS 1.2 cipher suites
/// of rustls all have forward secrecy and authenticated encryption.
///
/// # Errors
/// The file `authorities` cannot be read or has no certificate.
pub fn make(authorities: Option<&Path>, check: Check) -> Result<Connector, ConnectorError> {
    let roots = believed(authorities, Path::new(AUTHORITIES))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(ConnectorError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new_with_resolver(Names(Arc::clone(&check)));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(CheckedTcp { tcp, check }))
}

/// Returns the trusted CA certificates: of the owner's file, else the system, else Mozilla.
fn believed(authorities: Option<&Path>, system: &Path) -> Result<RootCertStore, ConnectorError> {
    let Some(file) = authorities.or_else(|| system.is_file().then_some(system)) else {
        return Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect());
    };
    let read = || CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>();
    let found = read().map_err(|why| ConnectorError::Unread(file.to_owned(), why))?;
    let mut roots = RootCertStore::empty();
    let (good, _) = roots.add_parsable_certificates(found);
    if good == 0 {
        return Err(ConnectorError::NoCertificate(file.to_owned()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::Request;
    use http_body_util::Empty;
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    use rustls::ServerConfig;
    use rustls::version::{TLS12, TLS13};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::{believed, make};

    #[tokio::test]
    async fn a_server_that_ends_at_tls_1_2_is_fetched_from() {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let authorities = folder.path().join("ca.pem");
        std::fs::write(&authorities, made.cert.pem()).unwrap();
        for versions in [&[&TLS12][..], &[&TLS13]] {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let key = made.signing_key.serialize_der().try_into().unwrap();
            let tls = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(versions)
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key)
                .unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
            tokio::spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = acceptor.accept(stream).await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await.unwrap();
                let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
            });
            let connector = make(Some(&authorities), Arc::new(|_| Ok(()))).unwrap();
            let client = Client::builder(TokioExecutor::new()).build(connector);
            let request = Request::get(format!("https://{address}/"));
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            assert_eq!(client.request(request).await.unwrap().status(), 204, "{versions:?}");
        }
    }

    #[test]
    fn a_file_says_whom_to_believe_and_without_one_the_public_are() {
        let folder = tempfile::tempdir().unwrap();
        let (own, none) = (folder.path().join("own.pem"), folder.path().join("none"));
        let made = rcgen::generate_simple_self_signed(["box".to_owned()]).unwrap();
        std::fs::write(&own, made.cert.pem()).unwrap();
        assert_eq!(believed(Some(&own), &none).unwrap().len(), 1);
        assert_eq!(believed(None, &own).unwrap().len(), 1);
        let public = believed(None, &none).unwrap();
        // ISRG Root X1 signs the certificates of most small web servers.
        let is_known = |name: &[u8]| name.windows(12).any(|part| part == b"ISRG Root X1");
        let known = public.roots.iter().any(|root| is_known(&root.subject));
        assert!(known, "{} authorities", public.len());
        let missing = believed(Some(&none), &own).unwrap_err();
        assert!(missing.to_string().contains("cannot read"), "{missing}");
        std::fs::write(&none, "nothing").unwrap();
        let empty = believed(Some(&none), &own).unwrap_err();
        assert!(empty.to_string().ends_with("has no certificate"), "{empty}");
    }
}
