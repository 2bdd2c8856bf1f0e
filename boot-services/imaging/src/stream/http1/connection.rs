//! Connections to servers: TCP, and TLS over it for `https`.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::stream::Url;

/// Environment variable with the path of a PEM file of certificate authorities, which replace the
/// public authorities, as in OpenSSL.
const AUTHORITIES: &str = "SSL_CERT_FILE";

static TLS: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(|| {
    let file = std::env::var_os(AUTHORITIES).filter(|file| !file.is_empty());
    config(file.as_deref().map(Path::new))
});

/// Connection to a server, with or without TLS.
#[derive(Debug)]
pub enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Failure to connect to a server.
#[derive(Debug)]
pub enum NoConnection {
    /// Temporary failure: another attempt may succeed.
    Passing(String),
    /// Permanent failure: another attempt would fail in the same way.
    Lasting(String),
}

/// Connects to the server of `url`, with TLS for `https`.
pub async fn connect(url: &Url) -> Result<Connection, NoConnection> {
    let stream = TcpStream::connect(url.address()).await.map_err(|error| {
        NoConnection::Passing(format!("cannot connect to {}: {error}", url.address()))
    })?;
    if !url.is_secure() {
        return Ok(Connection::Plain(stream));
    }
    let config = TLS.as_ref().map_err(|why| NoConnection::Lasting(why.clone()))?;
    secured(stream, url, Arc::clone(config)).await
}

async fn secured(
    stream: TcpStream,
    url: &Url,
    config: Arc<ClientConfig>,
) -> Result<Connection, NoConnection> {
    let name = ServerName::try_from(url.server_name().to_owned())
        .map_err(|error| NoConnection::Lasting(format!("{}: {error}", url.server_name())))?;
    let shaken = TlsConnector::from(config).connect(name, stream).await;
    shaken.map(|stream| Connection::Tls(Box::new(stream))).map_err(|error| {
        let why = format!("cannot start TLS with {}: {error}", url.address());
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidCertificate(_)) => NoConnection::Lasting(why),
            _ => NoConnection::Passing(why),
        }
    })
}

/// Builds the client configuration for TLS 1.2 and 1.3. Authorities come from the file
/// `authorities`, else from Mozilla's root program.
fn config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match authorities {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            let unread = |why: String| format!("cannot read {}: {why}", file.display());
            let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
            let found: Vec<_> = read.map_err(|error| unread(error.to_string()))?;
            if roots.add_parsable_certificates(found).0 == 0 {
                return Err(unread("it holds no certificate".to_owned()));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| format!("cannot set up TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::ServerConfig;
    use rustls::version::{TLS12, TLS13};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::{Connection, NoConnection, Url, config, secured};

    #[tokio::test]
    async fn https_servers_of_tls_1_2_and_1_3_are_reached_when_they_are_trusted() {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let authorities = folder.path().join("ca.pem");
        std::fs::write(&authorities, made.cert.pem()).unwrap();
        let (own, public) = (config(Some(&authorities)).unwrap(), config(None).unwrap());
        for versions in [&[&TLS12][..], &[&TLS13]] {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let key = made.signing_key.serialize_der().try_into().unwrap();
            let tls = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(versions)
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key)
                .unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
            tokio::spawn(async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                    stream.write_all(b"hello").await.unwrap();
                    let _ = stream.shutdown().await;
                }
            });
            let url: Url = format!("https://{address}/a").parse().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let mut secure = secured(stream, &url, Arc::clone(&own)).await.unwrap();
            assert!(matches!(secure, Connection::Tls(_)));
            let mut text = String::new();
            secure.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "hello");

            let stream = TcpStream::connect(address).await.unwrap();
            let refused = secured(stream, &url, Arc::clone(&public)).await.unwrap_err();
            let NoConnection::Lasting(why) = refused else { panic!("{refused:?}") };
            assert!(why.contains("certificate"), "{why}");
        }
        assert!(config(Some(folder.path().join("none").as_path())).unwrap_err().contains("none"));
    }
}
