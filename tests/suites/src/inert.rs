//! Our API with every kind that the suites create: pods and deployments are stored, but no
//! controller runs them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use apiserver::{AdminAccess, AuthConfig, Pki};
use axum::Router;
use jiff::Timestamp;
use resources::{Collector, Engine, WriteOptions, builtin, roles};
use serde_json::json;
use store::{Options, Store};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A running server with fresh state, ended when dropped.
pub struct Inert {
    // The field order is the order in which the parts are dropped.
    _runtime: Runtime,
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Inert {
    /// Starts a server on a free port.
    ///
    /// # Errors
    /// The server does not start.
    pub fn start() -> Result<Self> {
        let folder = TempDir::with_prefix("suites-").context("cannot make a folder")?;
        let state = folder.path().join("state");
        let runtime = Runtime::new().context("cannot start a runtime")?;
        let kubeconfig = runtime.block_on(serve(&state))?;
        Ok(Self { _runtime: runtime, folder, kubeconfig })
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Folder for the files of a suite.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Starts the API with the same parts as the supervisor does, and with the additional kinds of the
/// suites.
async fn serve(state: &Path) -> Result<PathBuf> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen")?;
    let url = format!("https://{}", listener.local_addr()?);
    let pki = Pki::ensure(state, &["127.0.0.1".to_owned()], Timestamp::now())?;
    let access = AdminAccess::ensure(state, &pki, &url)?;
    let store = Store::open(&state.join("objects.redb"), Options::default())?;
    let engine = Engine::new(store, builtin::conformance()?, Arc::new(stdx::SystemClock));
    engine.ensure_permanent().await?;
    roles::ensure(&engine).await?;
    // The Service that a cluster's API server creates for itself; suites read it.
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": { "type": "ClusterIP" },
    });
    engine.create("/services", "default", service, WriteOptions::default()).await?;
    tokio::spawn(resources::engine::crd_finalizer::run(engine.clone()));
    let collector = Collector::new(engine.clone(), Vec::new()).hesitating();
    tokio::spawn(collector.run(std::future::pending()));
    let config = AuthConfig::open(state, &url)?;
    let router = apiserver::router(engine, config, Router::new());
    let tls = pki.server_config()?;
    tokio::spawn(apiserver::serve(listener, tls, router, std::future::pending()));
    Ok(access.kubeconfig)
}
