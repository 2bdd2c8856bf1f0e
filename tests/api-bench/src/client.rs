//! A plain HTTP/1.1 client. Each clone that works at the same time has its own connection, so that
//! both servers have the same number of connections.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

/// Maximum time to connect to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Address and credentials for a server.
#[derive(Clone)]
pub struct Access {
    url: String,
    /// PEM of the authority that signed the server's certificate.
    authority: Vec<u8>,
    token: String,
}

impl Access {
    /// Reads a kubeconfig, whose authority is embedded or in another file.
    ///
    /// # Errors
    /// The kubeconfig cannot be read, or has no token.
    pub fn read(kubeconfig: &Path) -> Result<Self> {
        let text = fs::read_to_string(kubeconfig)
            .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        let config: Value = serde_saphyr::from_str(&text).context("a kubeconfig is YAML")?;
        let word = |path: &str| {
            let found = config.pointer(path).and_then(Value::as_str);
            found.with_context(|| format!("{} has no {path}", kubeconfig.display()))
        };
        let cluster = "/clusters/0/cluster";
        let authority = match word(&format!("{cluster}/certificate-authority-data")) {
            Ok(data) => STANDARD.decode(data).context("the authority is no base64")?,
            Err(_) => fs::read(word(&format!("{cluster}/certificate-authority"))?)?,
        };
        let url = word(&format!("{cluster}/server"))?.to_owned();
        Ok(Self { url, authority, token: word("/users/0/user/token")?.to_owned() })
    }
}

/// A client of one server. Clones share one pool of connections.
#[derive(Clone)]
pub struct Client {
    http: HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    access: Access,
}

impl Client {
    /// Creates a client without connecting.
    ///
    /// # Errors
    /// The authority is not a valid certificate.
    pub fn new(access: Access) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&access.authority) {
            roots.add(certificate.context("cannot read the authority")?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp);
        let http = HyperClient::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { http, access })
    }

    /// Sends a request and returns the answer without its body.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the request; the error has the message of the
    /// server.
    pub async fn open(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("{}{path}", self.access.url))
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, format!("Bearer {}", self.access.token))
            .body(Full::new(body))?;
        let response = self.http.request(request).await;
        let response = response.with_context(|| format!("{method} {path} got no answer"))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let words = response.into_body().collect().await?.to_bytes();
        bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&words))
    }

    /// Sends a request and returns the body of the answer.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes> {
        let response = self.open(method, path, body).await?;
        Ok(response.into_body().collect().await?.to_bytes())
    }
}
