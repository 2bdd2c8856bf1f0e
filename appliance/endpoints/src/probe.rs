//! Health check of a machine: TCP, then TLS, then `GET /readyz` of the Kubernetes API server.
//!
//! TCP alone is not sufficient: an API server without etcd accepts connections and fails each
//! request. The certificate is not verified, because the box has no CA certificate of the cluster,
//! and a check reveals and decides nothing else. Clients verify the API server themselves.

use std::io::{Error, ErrorKind};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::backends::Health;

/// Maximum time of a TCP connection attempt, and of the rest of a check.
const STEP_WAIT: Duration = Duration::from_secs(2);
/// Name in the certificate of each Kubernetes API server.
const NAME: &str = "kubernetes";
/// Request without authentication, which Kubernetes permits by `system:public-info-viewer`.
const REQUEST: &[u8] =
    b"GET /readyz HTTP/1.1\r\nHost: kubernetes\r\nUser-Agent: tinbox\r\nConnection: close\r\n\r\n";
/// Length of `HTTP/1.1 200`, all that is read of a response.
const STATUS_LINE: usize = 12;

/// Checker of machines; clones share the TLS settings.
#[derive(Clone)]
pub struct Prober(TlsConnector);

impl Prober {
    /// Creates a checker.
    ///
    /// # Errors
    /// The TLS library does not have the protocol versions.
    pub fn new() -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .dangerous()
            .with_custom_certificate_verifier(tls_pin::any_certificate(provider))
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Checks one machine. Takes at most twice [`STEP_WAIT`]. `None` if the box itself could not
    /// make the connection, so that the health is unknown.
    pub async fn check(&self, address: SocketAddrV4) -> Option<Health> {
        let stream = match timeout(STEP_WAIT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if is_local(&error) => {
                tracing::warn!(%address, %error, "cannot check a machine");
                return None;
            }
            Ok(Err(_)) | Err(_) => return Some(Health::Down),
        };
        Some(match timeout(STEP_WAIT, self.status_line(stream)).await {
            Ok(Ok(line)) => health_of(&line),
            Ok(Err(_)) | Err(_) => Health::Listening,
        })
    }

    async fn status_line(&self, stream: TcpStream) -> Result<[u8; STATUS_LINE], Error> {
        let name = ServerName::try_from(NAME).map_err(Error::other)?;
        let mut stream = self.0.connect(name, stream).await?;
        stream.write_all(REQUEST).await?;
        let mut line = [0; STATUS_LINE];
        stream.read_exact(&mut line).await?;
        Ok(line)
    }
}

/// Returns true for an error of the box itself, such as `EMFILE` or `ENETUNREACH`. Only a refused
/// or timed out connection and an unreachable host show the health of the machine.
fn is_local(error: &Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, TimedOut};
    ![ConnectionRefused, ConnectionReset, HostUnreachable, TimedOut].contains(&error.kind())
}

/// Returns the health for the start of a response. 401 and 403 come from an API server that
/// permits no anonymous requests; its readiness is unknown.
fn health_of(line: &[u8; STATUS_LINE]) -> Health {
    let code = line.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..));
    match code {
        Some(b"200" | b"401" | b"403") => Health::Ready,
        _ => Health::Listening,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::{Health, health_of, is_local};

    #[test]
    fn an_error_of_the_box_is_not_the_health_of_a_machine() {
        // Error numbers of Linux (errno(3)).
        for (name, number, expected) in [
            ("ECONNREFUSED", 111, false),
            ("ETIMEDOUT", 110, false),
            ("EHOSTUNREACH", 113, false),
            ("ECONNRESET", 104, false),
            ("EMFILE", 24, true),
            ("ENFILE", 23, true),
            ("ENETUNREACH", 101, true),
            ("EADDRNOTAVAIL", 99, true),
            ("ENOBUFS", 105, true),
        ] {
            let error = Error::from_raw_os_error(number);
            assert_eq!(is_local(&error), expected, "{name}");
        }
    }

    #[test]
    fn only_a_successful_or_refused_request_is_ready() {
        for (line, expected) in [
            (b"HTTP/1.1 200", Health::Ready),
            (b"HTTP/1.0 200", Health::Ready),
            (b"HTTP/1.1 401", Health::Ready),
            (b"HTTP/1.1 403", Health::Ready),
            (b"HTTP/1.1 500", Health::Listening),
            (b"HTTP/1.1 404", Health::Listening),
            (b"HTTP/2.0 200", Health::Listening),
            (b"SSH-2.0-Open", Health::Listening),
        ] {
            assert_eq!(health_of(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
