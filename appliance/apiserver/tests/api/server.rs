//! A server of its own for each test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use apiserver::{AdminAccess, Authenticator, Engine, Pki, builtin};
use axum::Router;
use axum::routing::get;
use jiff::Timestamp;
use store::{Options, Store};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longest wait for anything in these tests.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running server and its state.
pub struct Server {
    pub engine: Engine,
    pub url: String,
    pub kubeconfig: PathBuf,
    pub token: String,
    pub ca_pem: String,
    folder: TempDir,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), apiserver::Error>>,
}

impl Server {
    /// Starts on a free port with fresh state.
    pub async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let state = folder.path().join("state");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let pki = Pki::ensure(&state, &["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
        let access = AdminAccess::ensure(&state, &pki, &url).unwrap();
        let store = Store::open(&state.join("objects.redb"), Options::default()).unwrap();
        let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(stdx::SystemClock));
        engine.ensure_permanent().await.unwrap();
        let extra = Router::new().route("/apis/tinbox.dev/v1alpha1/hello", get(async || "hello"));
        let known = Authenticator::load(&state).unwrap();
        let router = apiserver::router(engine.clone(), known, extra);
        let (stop, stopped) = oneshot::channel();
        let tls = pki.server_config().unwrap();
        let task = tokio::spawn(apiserver::serve(listener, tls, router, async {
            let _ = stopped.await;
        }));
        let text = std::fs::read_to_string(&access.kubeconfig).unwrap();
        let token = text.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap();
        Self {
            engine,
            url,
            token: token.to_owned(),
            ca_pem: pki.ca_pem().to_owned(),
            kubeconfig: access.kubeconfig,
            folder,
            stop,
            task,
        }
    }

    /// A folder for the test's own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the server; fails when it does not within its own grace.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
    }
}
