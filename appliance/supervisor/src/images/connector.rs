//! Connections to other servers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// The operating system's authorities; where there is no such file, no `https` server is believed.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Longest time to reach a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connector for `http` and `https`.
///
/// # Errors
/// When `authorities` cannot be read.
pub fn make(authorities: Option<&Path>) -> anyhow::Result<HttpsConnector<HttpConnector>> {
    let system = Path::new(AUTHORITIES);
    let mut roots = RootCertStore::empty();
    if let Some(file) = authorities.or_else(|| system.is_file().then_some(system)) {
        let read = || CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>();
        let found = read().with_context(|| format!("cannot read {}", file.display()))?;
        let (good, _) = roots.add_parsable_certificates(found);
        anyhow::ensure!(good > 0, "{} holds no certificate", file.display());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("cannot set up TLS")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp))
}
