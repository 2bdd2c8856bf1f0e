//! The box's own servers in a separate process: `tinbox-bench-boot served FOLDER`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use netboot::http::{Downloads, HttpConfig, HttpService, router, serve, serve_tls};
use netboot::tftp::{self, TftpConfig};
use netboot::{Files, Services};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::HOST;

/// TFTP port of the box, on loopback.
pub const TFTP_PORT: u16 = 1069;
pub const HTTP_PORT: u16 = 7080;
pub const TLS_PORT: u16 = 7443;
/// File name of the TLS key in the folder.
pub const KEY: &str = "key.pem";
pub const CERTIFICATE: &str = "certificate.pem";

/// Serves the artifacts of a folder until killed.
///
/// # Errors
/// A port is taken, or the certificate cannot be read.
pub fn run(folder: &Path) -> Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build()?.block_on(serve_all(folder))
}

async fn serve_all(folder: &Path) -> Result<()> {
    let services =
        Services { files: Files::new(folder), plans: Arc::new(()), observer: Arc::new(()) };
    let script_base = format!("http://{HOST}:{HTTP_PORT}");
    let shutdown = CancellationToken::new();
    let socket = tftp::bind(SocketAddr::from((HOST, TFTP_PORT)), None)?;
    let config = TftpConfig { script_base: script_base.clone() };
    // On the runtime's worker threads, as in the supervisor.
    let tftp = tokio::spawn(tftp::serve(socket, config, services.clone(), shutdown.clone()));
    let routes = router(HttpConfig { script_base, version: String::new() }, services.clone());
    let service = HttpService::with_downloads(routes, Downloads::boot(services));
    let plain = TcpListener::bind((HOST, HTTP_PORT)).await?;
    tokio::spawn(serve(plain, service.clone(), shutdown.clone()));
    let secure = TcpListener::bind((HOST, TLS_PORT)).await?;
    tokio::spawn(serve_tls(secure, Arc::new(tls(folder)?), service, shutdown));
    Ok(tftp.await??)
}

fn tls(folder: &Path) -> Result<rustls::ServerConfig> {
    let certificate = CertificateDer::from_pem_file(folder.join(CERTIFICATE));
    let certificate = certificate.context("cannot read the certificate")?;
    let key = PrivateKeyDer::from_pem_file(folder.join(KEY)).context("cannot read the key")?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(config)
}
