//! A client of the API that can leave answers unread and requests unfinished.

use std::convert::Infallible;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Maximum wait for the head of an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// One HTTP/2 connection to the API.
pub type Connection = SendRequest<Body>;

/// A client of the API, with a credential.
#[derive(Clone)]
pub struct Client {
    address: Ipv4Addr,
    tls: TlsConnector,
    token: String,
}

impl Client {
    /// Creates a client for the user of a kubeconfig, at the box's address.
    ///
    /// # Errors
    /// The kubeconfig cannot be read.
    pub fn new(path: &Path, address: Ipv4Addr) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let config: Value = serde_saphyr::from_str(&text).context("a kubeconfig is YAML")?;
        let word = |path: &str| {
            let word = config.pointer(path).and_then(Value::as_str);
            word.with_context(|| format!("the kubeconfig has no {path}"))
        };
        let authority = word("/clusters/0/cluster/certificate-authority-data")?;
        let authority = STANDARD.decode(authority).context("the authority is no base64")?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(certificate.context("cannot read the authority")?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let token = word("/users/0/user/token")?.to_owned();
        Ok(Self { address, tls: Arc::new(tls).into(), token })
    }

    /// Returns a copy of this client with another token.
    pub fn with(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    /// Opens a connection to the API.
    ///
    /// # Errors
    /// The box cannot be reached.
    pub async fn connect(&self) -> Result<Connection> {
        let socket = TcpStream::connect((self.address, 6443)).await.context("cannot connect")?;
        let name = ServerName::IpAddress(IpAddr::from(self.address).into());
        let stream = self.tls.connect(name, socket).await.context("no TLS connection")?;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = handshake.await.context("no HTTP/2 connection")?;
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Sends a request and returns the head of the answer.
    ///
    /// # Errors
    /// There is no answer in time.
    pub async fn open(
        &self,
        connection: &Connection,
        (method, path): (Method, &str),
        body: Body,
    ) -> Result<Response<Incoming>> {
        let kind = match method {
            Method::PATCH => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("https://{}:6443{path}", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", kind)
            .body(body)?;
        let mut connection = connection.clone();
        connection.ready().await?;
        let answer = tokio::time::timeout(ANSWER_LIMIT, connection.send_request(request));
        answer.await.context("no answer in time")?.context("no answer")
    }

    /// Sends a request and returns the whole answer, which must report success.
    ///
    /// # Errors
    /// The request failed.
    pub async fn send(
        &self,
        connection: &Connection,
        method: (Method, &str),
        body: &Value,
    ) -> Result<Value> {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let answer = self.open(connection, method, full(body)).await?;
        let code = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        ensure!(code.is_success(), "{code}: {}", String::from_utf8_lossy(&body));
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}

/// A body that is completely available.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}
