//! Test fixture: a separate box for each test, and runs of the program against the box.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiserver::{AdminAccess, AuthConfig, Pki};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use jiff::Timestamp;
use resources::{Engine, Patch, WriteOptions, builtin, roles};
use serde_json::{Value, json};
use status::view::StatusView;
pub use stdx::testing::PATIENCE;
use store::{Options, Store};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::os_images::SharedCache;

/// Maximum number of connections that the box has not accepted yet.
const BACKLOG: u32 = 128;

/// Response of the progress extension; `None` for 404.
pub type Progress = Arc<Mutex<Option<Value>>>;

/// Restart, poweroff and reset requests that arrived.
pub type LeaveRequests = Arc<Mutex<Vec<Value>>>;

/// Shared state of the API extensions and the tests.
#[derive(Clone, Default)]
pub struct Extension {
    pub progress: Progress,
    pub left: LeaveRequests,
    pub view: SharedView,
    pub os_images: SharedCache,
}

/// Status view that the box shows.
pub type SharedView = Arc<Mutex<StatusView>>;

pub struct Place {
    pub engine: Engine,
    pub kubeconfig: PathBuf,
    pub progress: Progress,
    pub left: LeaveRequests,
    pub view: SharedView,
    pub os_images: SharedCache,
    folder: TempDir,
    port: Port,
    running: Running,
}

/// Port reserved for one test by a bound socket that does not listen.
struct Port(TcpSocket);

impl Port {
    fn free() -> Self {
        Self(bound(SocketAddr::from(([127, 0, 0, 1], 0))))
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

/// Binds a socket to an address. Two reusable sockets can be bound to one address while neither
/// listens.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), apiserver::Error>>,
}

/// Outcome of a run of the program.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Outcome {
    /// Returns the standard output; fails the test if the run failed.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }
}

impl Place {
    pub async fn start() -> Place {
        let folder = TempDir::new().unwrap();
        let extension = Extension::default();
        let port = Port::free();
        let (engine, running) = serve(folder.path(), &port, extension.clone()).await;
        let kubeconfig = folder.path().join("admin.kubeconfig");
        let Extension { progress, left, view, os_images } = extension;
        Place { engine, kubeconfig, progress, left, view, os_images, folder, port, running }
    }

    /// Stops the box and keeps its state.
    pub async fn stop(self) -> Stopped {
        let Place { engine, kubeconfig, progress, left, view, os_images, folder, port, running } =
            self;
        running.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, running.task).await.unwrap().unwrap().unwrap();
        drop(engine);
        Stopped {
            kubeconfig,
            extension: Extension { progress, left, view, os_images },
            folder,
            port,
        }
    }

    /// Creates a file in the folder of the test.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the program, called as `name`, ready to run in the folder of the test.
    pub fn command(&self, name: &str, line: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tinbox"));
        command
            .arg0(name)
            .args(line)
            .current_dir(self.folder.path())
            .env_clear()
            .env("TINBOX_KUBECONFIG", &self.kubeconfig)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn spawn(&self, line: &[&str]) -> Child {
        self.command("tinbox", line).spawn().unwrap()
    }

    pub async fn run(&self, line: &[&str]) -> Outcome {
        end(self.spawn(line)).await
    }

    pub async fn write_status(&self, resource: &str, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        let options = WriteOptions::status();
        self.engine.patch(resource, "default", name, patch, options).await.unwrap();
    }
}

/// Stopped box with its state.
pub struct Stopped {
    pub kubeconfig: PathBuf,
    extension: Extension,
    folder: TempDir,
    port: Port,
}

impl Stopped {
    /// Starts the box again with the same state, port and identity.
    pub async fn start(self) -> Place {
        let Stopped { kubeconfig, extension, folder, port } = self;
        let (engine, running) = serve(folder.path(), &port, extension.clone()).await;
        let Extension { progress, left, view, os_images } = extension;
        Place { engine, kubeconfig, progress, left, view, os_images, folder, port, running }
    }
}

async fn serve(state: &Path, port: &Port, extension: Extension) -> (Engine, Running) {
    let Extension { progress, left, view, os_images } = extension;
    let address = port.address();
    let listener = bound(address).listen(BACKLOG).unwrap();
    let pki = Pki::ensure(state, &["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
    AdminAccess::ensure(state, &pki, &format!("https://{address}")).unwrap();
    let store = Store::open(&state.join("objects.redb"), Options::default()).unwrap();
    let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(stdx::SystemClock));
    engine.ensure_permanent().await.unwrap();
    roles::ensure(&engine).await.unwrap();
    let path = "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/workflows/{name}/progress";
    let answer = move || {
        let now = progress.lock().unwrap().clone();
        async { now.map(Json).ok_or(StatusCode::NOT_FOUND) }
    };
    let router = apiserver::router(
        engine.clone(),
        AuthConfig::open(state, &format!("https://{address}")).unwrap(),
        Router::new()
            .route(path, get(answer))
            .route("/apis/tinbox.dev/v1alpha1/status", get(async move || Json(copy(&view))))
            .merge(crate::settings::router())
            .merge(crate::os_images::router(os_images))
            .merge(reset(left)),
    );
    let (stop, stopped) = oneshot::channel();
    let tls = pki.server_config().unwrap();
    let task = tokio::spawn(apiserver::serve(listener, tls, router, async {
        let _ = stopped.await;
    }));
    (engine, Running { stop, task })
}

fn copy(view: &SharedView) -> StatusView {
    view.lock().unwrap().clone()
}

/// Returns a fake reset API of a box with 12 machines, which records the requests.
fn reset(left: LeaveRequests) -> Router {
    let erased = || async {
        let erased = json!({ "name": "box-7f3a", "machines": 12, "keys": 3, "images": 1 });
        ([("warning", "299 - \"this box is in safe mode\"")], Json(erased))
    };
    let leave = move |Json(wish): Json<Value>| {
        left.lock().unwrap().push(wish);
        erased()
    };
    Router::new().route("/apis/box.tinbox.dev/v1alpha1/reset", get(erased).post(leave))
}

/// Waits for the end of a program.
pub async fn end(child: Child) -> Outcome {
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.expect("the program ends in time").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Calls `look` until it returns a value, and returns the value.
pub async fn until<T, F: Future<Output = Option<T>>>(look: impl Fn() -> F) -> T {
    let polled = async {
        loop {
            match look().await {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, polled).await.expect("it comes to pass in time")
}

/// Hardware and BMC Machine of a machine with a BMC, as YAML.
pub const NUC1: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: bmc-nuc1}
stringData: {username: ADMIN, password: hunter2}
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Machine
metadata: {name: bmc-nuc1}
spec:
  connection:
    host: 10.77.0.21
    insecureTLS: true
    authSecretRef: {name: bmc-nuc1, namespace: default}
---
apiVersion: tinkerbell.org/v1alpha1
kind: Hardware
metadata: {name: nuc1}
spec:
  bmcRef: {apiGroup: bmc.tinkerbell.org, kind: Machine, name: bmc-nuc1}
  interfaces:
  - netboot: {allowPXE: true}
    dhcp:
      mac: 52:54:00:77:00:01
      ip: {address: 10.77.0.11, netmask: 255.255.255.0}
";

/// Template of one task with two actions.
pub const DEBIAN: &str = "\
version: \"0.1\"
name: debian
global_timeout: 3600
tasks:
- name: os-install
  worker: \"{{.device_1}}\"
  actions:
  - name: stream-image
    image: image2disk:latest
    timeout: 600
  - name: reboot
    image: reboot:latest
    timeout: 60
";
