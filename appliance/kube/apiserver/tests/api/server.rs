//! Server for tests; each test starts its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiserver::{AdminAccess, AuthConfig, Pki};
use axum::Router;
use axum::routing::get;
use jiff::Timestamp;
use resources::{Collector, Engine, builtin, roles};
pub use stdx::testing::PATIENCE;
use store::{Options, Store};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

/// Running server with its state directory.
pub struct Server {
    pub engine: Engine,
    pub store: Store,
    pub url: String,
    pub kubeconfig: PathBuf,
    pub token: String,
    pub ca_pem: String,
    folder: TempDir,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), apiserver::Error>>,
    collector: AbortHandle,
    cleanup: JoinHandle<()>,
}

impl Server {
    /// Starts on a free port with fresh state.
    pub async fn start() -> Self {
        Self::start_with(|config| config).await
    }

    /// Works as [`Self::start`], with a changed `AuthConfig`.
    pub async fn start_with(change: impl FnOnce(AuthConfig) -> AuthConfig) -> Self {
        let folder = TempDir::new().unwrap();
        let state = folder.path().join("state");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let pki = Pki::ensure(&state, &["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
        let access = AdminAccess::ensure(&state, &pki, &url).unwrap();
        let store = Store::open(&state.join("objects.redb"), Options::default()).unwrap();
        let engine =
            Engine::new(store.clone(), builtin::registry().unwrap(), Arc::new(stdx::SystemClock));
        engine.ensure_permanent().await.unwrap();
        roles::ensure(&engine).await.unwrap();
        let cleanup = tokio::spawn(resources::engine::crd_finalizer::run(engine.clone()));
        let extra = Router::new().route("/apis/tinbox.dev/v1alpha1/hello", get(async || "hello"));
        let config = change(AuthConfig::open(&state, &url).unwrap());
        let router = apiserver::router(engine.clone(), config, extra);
        let collector = Collector::new(engine.clone(), Vec::new()).run(std::future::pending());
        let collector = tokio::spawn(collector).abort_handle();
        let (stop, stopped) = oneshot::channel();
        let tls = pki.server_config().unwrap();
        let task = tokio::spawn(apiserver::serve(listener, tls, router, async {
            let _ = stopped.await;
        }));
        let text = std::fs::read_to_string(&access.kubeconfig).unwrap();
        let token = text.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap();
        Self {
            engine,
            store,
            url,
            token: token.to_owned(),
            ca_pem: pki.ca_pem().to_owned(),
            kubeconfig: access.kubeconfig,
            folder,
            stop,
            task,
            collector,
            cleanup,
        }
    }

    /// Folder for the test's own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Host and port of the server.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("https://").unwrap()
    }

    /// State directory of the server.
    pub fn state(&self) -> PathBuf {
        self.folder().join("state")
    }

    /// Stops the server; panics if the server does not stop within its grace period. Returns the
    /// state directory, which is removed on drop.
    pub async fn stop(self) -> TempDir {
        self.collector.abort();
        self.cleanup.abort();
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
        self.folder
    }
}
