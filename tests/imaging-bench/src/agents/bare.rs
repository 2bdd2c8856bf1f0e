//! The baseline: a server with the same messages over the same TLS that stores nothing, in a
//! separate process: `tinbox-bench-agents bare FOLDER ADDRESS`.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_rpc::{
    ActionState, Assignment, Attributes, Credentials, Hello, Pending, Pin, Progress, Refusal,
    Report, Workflows,
};
use anyhow::{Context as _, Result};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::load::ACTIONS;
use crate::rack::waits;

const KEY: &str = "key.pem";
const CERTIFICATE: &str = "certificate.pem";

/// Generates the server's key; returns its pin for clients.
///
/// # Errors
/// The key cannot be generated or written.
pub fn prepare(folder: &Path) -> Result<Pin> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    fs::write(folder.join(CERTIFICATE), made.cert.pem())?;
    fs::write(folder.join(KEY), made.signing_key.serialize_pem())?;
    Ok(Pin::of(made.cert.der())?)
}

/// Serves until killed.
///
/// # Errors
/// The address is taken, or the key cannot be read.
pub fn run(folder: &Path, address: SocketAddr) -> Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        let routes = agent_rpc::server::routes(Arc::new(Bare::default()));
        let tls = Arc::new(tls(folder)?);
        netboot::http::serve_tls(listener, tls, routes, CancellationToken::new()).await;
        Ok(())
    })
}

fn tls(folder: &Path) -> Result<rustls::ServerConfig> {
    let certificate = CertificateDer::from_pem_file(folder.join(CERTIFICATE));
    let certificate = certificate.context("cannot read the certificate")?;
    let key = PrivateKeyDer::from_pem_file(folder.join(KEY)).context("cannot read the key")?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Counts the finished actions of each agent; a Hello resets the count.
#[derive(Default)]
struct Bare(Mutex<HashMap<String, usize>>);

impl Bare {
    fn done(&self, agent_id: &str) -> usize {
        let done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        done.get(agent_id).copied().unwrap_or(0)
    }

    fn set(&self, agent_id: String, done: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(agent_id, done);
    }
}

impl Workflows for Bare {
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        _attributes: Option<Attributes>,
        _patience: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>> {
        Box::pin(async move {
            let done = self.done(agent_id);
            if done == ACTIONS || waits(agent_id) {
                return Err(Refusal::NotFound(format!("no workflow for agent {agent_id}")));
            }
            Ok(Assignment {
                workflow_id: format!("default/{agent_id}"),
                task_id: "0f8fad5b-d9cb-469f-a165-70867728950e".to_owned(),
                agent_id: agent_id.to_owned(),
                action_id: format!("7c9e6679-7425-40de-944b-e07fc1f9{done:04}"),
                name: format!("write-{done}"),
                image: "quay.io/tinkerbell/actions/image2disk:latest".to_owned(),
                timeout_secs: 600,
                environment: vec!["DEST_DISK=/dev/sda".to_owned()],
                ..Assignment::default()
            })
        })
    }

    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async move {
            if report.state == ActionState::Success {
                let done = self.done(&report.agent_id) + 1;
                self.set(report.agent_id, done);
            }
            Ok(())
        })
    }

    fn progress(&self, _progress: Progress) -> Pending<'_, Option<String>> {
        Box::pin(async { None })
    }

    fn hello(&self, hello: Hello, _peer: Option<SocketAddr>) {
        self.set(hello.agent_id, 0);
    }

    fn authenticate(&self, _: &str, _: &Credentials<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}
